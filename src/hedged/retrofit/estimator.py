"""`Retrofit`: a hedged head on the vectors of any model, by the conventions of scikit-learn."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Literal, Self, cast, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin  # type: ignore[import-untyped]
from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped]

from hedged._precision import single_by_default
from hedged._progress import progress
from hedged.distributions import Gaussian
from hedged.errors import ConfigError, DataError, RunError
from hedged.match.evidence import Evidence
from hedged.models import Embedder
from hedged.models.backbones import Vectors
from hedged.models.evidence.asides import ASIDE
from hedged.novelty import Novelty
from hedged.retrofit import checks, saved
from hedged.retrofit.crossfit import Training
from hedged.retrofit.fitting import KINDS, LEAST_IDENTITIES, Fitted, Fitting, Plan
from hedged.retrofit.folds import numbered
from hedged.retrofit.select import Report

Floats = NDArray[np.float64]
MOST_SCORED = 3000  # vectors whose pairs `score` looks at
STEPS_TOLD = 12  # about how many steps of a fit are told


@final
class Retrofit(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Calibrated match probabilities, and an uncertainty, from vectors that you have: log-odds = c + κ log BF.

    `fit` finds what tells identities apart in closed form (PLDA), learns how much a single vector says, compares it
    with the simpler ways on held-out identities and calibrates it there. It takes vectors of any model and needs
    nothing of the model itself.

    Args:
        dim: dimensions of each branch of the head, at most, or "auto".
        axes: principal axes of the vectors that are kept.
        ridge: how much W, the variance within identities, is evened out before directions are found, or "auto".
        branches: kinds of branches to blend, such as "unit+learnt+wide", or "auto"; `report_.settings` says which were
            chosen. Given, nothing is compared, and a fit takes about half of the time.
        strangers: whether some training vectors stay with the head to tell how rare an input is, or "auto".
        held_out: what is held out to compare and calibrate by: "identities", if later vectors show new ones; "inputs",
            if they show those of `fit`.
        steps: batches that the quality network learns from.
        noise: on what it sees, in training.
        seed: of folds, batches and noise; the same seed gives the same head.
        verbose: whether `fit` tells on standard error what it is doing.

    After `fit`: `report_` says what was compared and chosen, `match_model` is the `Evidence` that turns two embeddings
    into calibrated log-odds, `embedder_` is both as an `Embedder`, for a `Gallery` and all else that takes one, and
    `n_features_in_` is the width of the vectors.

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(40), 5)
    >>> X = rng.normal(size=(40, 16))[y] + 0.5 * rng.normal(size=(200, 16))
    >>> head = Retrofit(steps=20).fit(X, y)
    >>> head.match_proba(X[:2], X[:3]).shape, head.uncertainty(X).shape, bool(head.score(X, y) > 0.9)
    ((2, 3), (200,), True)
    """

    report_: Report
    """What `fit` compared on held-out identities, and what it chose."""

    embedder_: Embedder
    """The head as a model: what `save` writes and `Embedder.load` opens."""

    def __init__(
        self,
        dim: int | Literal["auto"] = "auto",
        axes: int = 400,
        ridge: float | Literal["auto"] = "auto",
        branches: str = "auto",
        strangers: bool | Literal["auto"] = "auto",
        held_out: Literal["identities", "inputs"] = "identities",
        steps: int = 300,
        noise: float = 1.0,
        seed: int = 0,
        verbose: bool = False,
    ) -> None:
        self.dim = dim
        self.axes = axes
        self.ridge = ridge
        self.branches = branches
        self.strangers = strangers
        self.held_out = held_out
        self.steps = steps
        self.noise = noise
        self.seed = seed
        self.verbose = verbose

    @single_by_default()
    def fit(self, X: ArrayLike, y: ArrayLike, poor: ArrayLike | None = None) -> Self:
        """Fit the head to vectors of known identities.

        Args:
            X: vectors, (n, F).
            y: the identity each shows, (n,), numbers or words.
            poor: vectors of the same inputs seen worse (blurred, hidden, cut short), row by row, (n, F). Without them,
                poorer vectors are made of X by dropping features and adding noise; real ones teach more.
        """
        began = time.monotonic()
        self._check_settings()
        x, labels = checks.labelled(X, y)
        given = checks.poorer(poor, x)
        plan = Plan(
            dim=None if self.dim == "auto" else int(self.dim),
            axes=self.axes,
            ridge=None if self.ridge == "auto" else float(self.ridge),
            branches=None if self.branches == "auto" else tuple(self.branches.split("+")),
            strangers=None if self.strangers == "auto" else bool(self.strangers),
            held_out=self.held_out,
            training=Training(steps=self.steps, noise=self.noise),
            seed=self.seed,
        )
        identities = numbered(labels)
        fitted = self._fitted(x, given, identities, plan)
        rarity, clarity = (ASIDE * (part is not None) for part in (fitted.head.strangers, fitted.head.clarity))
        embedder = Embedder(Vectors(x.shape[1]), fitted.head, Evidence(*fitted.line, *fitted.doubt, rarity, clarity))
        embedder.novelty_model = novelty_of(x, given, identities, self.seed)
        report = self._report(fitted, identities, given is not None, time.monotonic() - began)
        embedder.notes = {"way": report.chosen, "vectors": report.vectors, "identities": report.identities}
        self._keep(embedder, report)
        return self

    @single_by_default()
    def match_proba(self, A: ArrayLike, B: ArrayLike) -> Floats:
        """Calibrated match probabilities of all pairs, (n, m), where half of all pairs match.

        For another base rate: `head.match_model.at_base_rate(rate)` on `head.embed(A)` and `head.embed(B)`.

        Args:
            A: vectors, (n, F).
            B: vectors, (m, F).
        """
        return np.asarray(self.match_model.probability_matrix(self.embed(A), self.embed(B)).numpy())

    @single_by_default()
    def uncertainty(self, A: ArrayLike) -> Floats:
        """η(x), (n,), in [0, 1]: the chance that a pair with this vector is decided wrongly, by held-out identities.

        Matches count as much as strangers, so that of an input of which nothing is known it is about a half. It falls
        with the log-odds of the vector with itself, and with how clear it is: as long as others, near to others, and
        not like poorer views.

        Args:
            A: vectors, (n, F).
        """
        return np.asarray(self.match_model.self_mismatch(self.embed(A).to(torch.float64)).numpy())

    @single_by_default()
    def novelty(self, A: ArrayLike) -> Floats:
        """How unlike the training vectors each is, (n,) in (0, 1): the share of held-out ones that are less novel.

        A new identity is no novelty; a vector of another kind of input is (`hedged.novelty`).

        Args:
            A: vectors, (n, F).
        """
        x = self._vectors(A)
        return np.asarray(self.embedder_.novelty(x).numpy())

    @single_by_default()
    def embed(self, A: ArrayLike) -> Gaussian:
        """The embeddings, a batch of n Gaussians.

        Args:
            A: vectors, (n, F).
        """
        x = self._vectors(A)
        return cast("Gaussian", self.embedder_.embed(x))

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Posterior means, (n, D): vectors for whatever comes next in a Pipeline.

        Args:
            X: vectors, (n, F).
        """
        return np.asarray(self.embed(X).mean.numpy())

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Balanced accuracy of all pairs where p ≥ ½ is taken for a match.

        Args:
            X: vectors, (n, F).
            y: the identity each shows, (n,).
        """
        x, labels = checks.labelled(X, y)
        rows = np.sort(np.random.default_rng(self.seed).permutation(len(x))[:MOST_SCORED])
        first, second = np.triu_indices(len(rows), 1)
        matches = (labels[rows][:, None] == labels[rows])[first, second]
        if matches.all() or not matches.any():
            raise DataError(
                f"the {len(rows)} vectors hold no pair of one identity or no pair of two: give more of them"
            )
        accepted = self.match_proba(x[rows], x[rows])[first, second] >= 0.5
        return float(accepted[matches].mean() + (~accepted[~matches]).mean()) / 2

    @property
    def match_model(self) -> Evidence:
        """The calibrated model of matches between embeddings."""
        self._require_fit()
        return cast("Evidence", self.embedder_.match_model)

    def save(self, folder: str | Path) -> None:
        """Write the head to a folder, as a model that `Embedder.load` and every verb of the command line open too.

        Args:
            folder: made if need be; files of a head in it are replaced.
        """
        self._require_fit()
        saved.write(Path(folder), saved.Saved(self.get_params(), self.embedder_, self.report_))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The head that `save` wrote.

        Args:
            folder: where it is.
        """
        if not isinstance(folder, str | os.PathLike):
            raise RunError(f"a head is loaded from the path of a folder, got {folder!r}")
        found = saved.read(Path(folder))
        try:
            head = cls(**found.parameters)
        except TypeError as error:
            raise RunError(f"the head in {folder} is of another version of hedged ({error}): fit it again") from error
        head._keep(found.embedder, found.report)
        return head

    def _keep(self, embedder: Embedder, report: Report) -> None:
        self.embedder_ = embedder.eval().requires_grad_(False)
        self.report_ = report
        self.n_features_in_ = embedder.head.features

    def _check_settings(self) -> None:
        wrong = [
            ("dim", self.dim, '"auto" or an integer from 1 up', self.dim == "auto" or _is_count(self.dim)),
            ("axes", self.axes, "an integer from 1 up", _is_count(self.axes)),
            ("ridge", self.ridge, '"auto" or a positive number', self.ridge == "auto" or _is_positive(self.ridge)),
            ("branches", self.branches, f'"auto" or some of {", ".join(KINDS)} joined by +', _are_kinds(self.branches)),
            ("strangers", self.strangers, '"auto", True or False', self.strangers in ("auto", True, False)),
            ("held_out", self.held_out, '"identities" or "inputs"', self.held_out in ("identities", "inputs")),
            ("steps", self.steps, "an integer from 1 up", _is_count(self.steps)),
            ("seed", self.seed, "an integer from 0 up", self.seed == 0 or _is_count(self.seed)),
            ("noise", self.noise, "a number from 0 up", self.noise == 0 or _is_positive(self.noise)),
        ]
        for name, value, expected, is_right in wrong:
            if not is_right:
                raise ConfigError(f"Retrofit takes {expected} as {name}, got {name}={value!r}")

    def _fitted(
        self, x: NDArray[np.float32], poor: NDArray[np.float32] | None, y: NDArray[np.intp], plan: Plan
    ) -> Fitted:
        if not self.verbose:
            return Fitting(x, poor, y, plan, lambda words: None).result()
        done = 0
        with progress("Fitting", STEPS_TOLD) as update:

            def tell(words: str) -> None:
                nonlocal done
                update(min(done, STEPS_TOLD - 1), words)  # some ways to fit take a step more
                done += 1

            result = Fitting(x, poor, y, plan, tell).result()
            update(STEPS_TOLD, result.way)
        return result

    def _report(self, fitted: Fitted, y: NDArray[np.intp], is_given: bool, seconds: float) -> Report:
        identities = int(y.max()) + 1
        notes = []
        if not is_given:
            notes.append("Poorer vectors were made of X by dropping features and adding noise; real ones teach more.")
        if not fitted.way.startswith("evidence"):
            reason = (
                f"{identities} identities are too few to train on ({LEAST_IDENTITIES} is the least)"
                if identities < LEAST_IDENTITIES and self.held_out == "identities"
                else f"it was ahead on held-out {self.held_out}"
            )
            notes.append(f"Fell back to {fitted.way}: {reason}.")
        return Report(
            chosen=fitted.way,
            compared=fitted.compared,
            identities=identities,
            vectors=len(y),
            dim=fitted.head.dim,
            settings=fitted.settings,
            seconds=round(seconds, 1),
            notes=tuple(notes),
        )

    def _vectors(self, x: ArrayLike) -> torch.Tensor:
        self._require_fit()
        return torch.from_numpy(checks.vectors("A", x, self.n_features_in_))

    def _require_fit(self) -> None:
        if not hasattr(self, "embedder_"):
            raise NotFittedError("this Retrofit is not fitted yet: call fit(X, y) first, or Retrofit.load(folder)")


def novelty_of(
    x: NDArray[np.float32], poor: NDArray[np.float32] | None, identities: NDArray[np.intp], seed: int
) -> Novelty:
    """The novelty of vectors: what was given as seen worse is known, too.

    Args:
        x: training vectors, (n, F).
        poor: the same seen worse, (n, F), or None.
        identities: whose each is, (n,).
        seed: which identities are held out together.
    """
    seen = [x] if poor is None else [x, poor]
    return Novelty.fitted(np.concatenate(seen), np.tile(identities, len(seen)), seed)


def _are_kinds(value: Any) -> bool:
    if value == "auto":
        return True
    return (
        isinstance(value, str)
        and set(value.split("+")) <= set(KINDS)
        and len(set(value.split("+"))) == value.count("+") + 1
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and 0 < float(value) < float("inf")
