"""`Retrofit`: a hedged head on the vectors of any model, by the conventions of scikit-learn."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Literal, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from sklearn.base import BaseEstimator, TransformerMixin  # type: ignore[import-untyped]
from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped]

from hedged._files import make_folder, write_atomically, write_json
from hedged._progress import progress
from hedged.distributions import Gaussian
from hedged.errors import ConfigError, DataError, RunError
from hedged.match.evidence import Evidence
from hedged.retrofit import checks
from hedged.retrofit.crossfit import Training
from hedged.retrofit.degrade import poorer_vectors
from hedged.retrofit.distance import NeighbourDistance
from hedged.retrofit.fitting import LEAST_IDENTITIES, Fitted, Fitting, Plan
from hedged.retrofit.folds import numbered
from hedged.retrofit.front import Front
from hedged.retrofit.head import Branch, EvidenceHead
from hedged.retrofit.select import Measured, Report

Floats = NDArray[np.float64]
FORMAT = 1
DESCRIPTION, WEIGHTS = "retrofit.json", "retrofit.safetensors"
EMBED_CHUNK = 4096  # vectors embedded at a time
MOST_SCORED = 3000  # vectors whose pairs `score` looks at
STEPS_TOLD = 12  # about how many steps of a fit are told


@final
class Retrofit(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Calibrated match probabilities, and an uncertainty, from vectors that you have: log-odds = c + κ log BF.

    `fit` finds what tells identities apart in closed form (PLDA), learns how much a single vector says, compares it
    with the simpler ways on held-out identities and calibrates it there. It takes vectors of any model and needs
    nothing of the model itself.

    Args:
        dim: dimensions of each of the two branches of the head, or "auto".
        axes: principal axes of the vectors that are kept.
        ridge: how much W, the variance within identities, is evened out before directions are found, or "auto".
        steps: batches that the quality network learns from.
        noise: on what it sees, in training.
        seed: of folds, batches and noise; the same seed gives the same head.
        verbose: whether `fit` tells on standard error what it is doing.

    After `fit`: `report_` says what was compared and chosen, `match_model` is the `Evidence` that turns two embeddings
    into calibrated log-odds, `n_features_in_` is the width of the vectors.

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(40), 5)
    >>> X = rng.normal(size=(40, 16))[y] + 0.5 * rng.normal(size=(200, 16))
    >>> head = Retrofit(steps=20).fit(X, y)
    >>> head.match_proba(X[:2], X[:3]).shape, head.uncertainty(X).shape, bool(head.score(X, y) > 0.9)
    ((2, 3), (200,), True)
    """

    report_: Report

    def __init__(
        self,
        dim: int | Literal["auto"] = "auto",
        axes: int = 400,
        ridge: float | Literal["auto"] = "auto",
        steps: int = 300,
        noise: float = 1.0,
        seed: int = 0,
        verbose: bool = False,
    ) -> None:
        self.dim = dim
        self.axes = axes
        self.ridge = ridge
        self.steps = steps
        self.noise = noise
        self.seed = seed
        self.verbose = verbose

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
        worse = poorer_vectors(x, self.seed) if given is None else given
        plan = Plan(
            dim=None if self.dim == "auto" else int(self.dim),
            axes=self.axes,
            ridge=None if self.ridge == "auto" else float(self.ridge),
            training=Training(steps=self.steps, noise=self.noise),
            seed=self.seed,
        )
        identities = numbered(labels)
        fitted = self._fitted(x, worse, identities, plan)
        self.n_features_in_ = x.shape[1]
        self._head = fitted.head.eval().requires_grad_(False)
        self._match_model = Evidence(fitted.line.log_odds, fitted.line.temper).requires_grad_(False)
        self._doubt = (fitted.doubt.log_odds, fitted.doubt.temper)
        self._novelty = NeighbourDistance.fitted(x, self.seed)
        self.report_ = self._report(fitted, identities, given is not None, time.monotonic() - began)
        return self

    def match_proba(self, A: ArrayLike, B: ArrayLike) -> Floats:
        """Calibrated match probabilities of all pairs, (n, m), where half of all pairs match.

        For another base rate: `head.match_model.at_base_rate(rate)` on `head.embed(A)` and `head.embed(B)`.

        Args:
            A: vectors, (n, F).
            B: vectors, (m, F).
        """
        return np.asarray(self.match_model.probability_matrix(self.embed(A), self.embed(B)).numpy())

    def uncertainty(self, A: ArrayLike) -> Floats:
        """η(x), (n,), in [0, 1]: the chance that a true match of this vector is missed, as held-out identities tell.

        It falls with the log-odds of the vector with itself, and is ranked by them without ties.

        Args:
            A: vectors, (n, F).
        """
        z = self.embed(A)
        own = Evidence().logit(z, z).detach().double().numpy()
        return np.asarray(1 / (1 + np.exp(np.clip(self._doubt[0] + self._doubt[1] * own, -700, 700))))

    def novelty(self, A: ArrayLike) -> Floats:
        """How unlike the training vectors each is, (n,): one minus its cosine with the fifth nearest of them.

        A new identity is no novelty; a vector of another kind of input is.

        Args:
            A: vectors, (n, F).
        """
        return np.asarray(self._fitted_part(self._vectors(A), self._novelty).double().numpy())

    def embed(self, A: ArrayLike) -> Gaussian:
        """The embeddings, a batch of n Gaussians.

        Args:
            A: vectors, (n, F).
        """
        x = self._vectors(A)
        parts = [self._head(x[i : i + EMBED_CHUNK]) for i in range(0, len(x), EMBED_CHUNK)]
        return Gaussian(*(torch.cat([z.tensors[i] for z in parts]) for i in range(2)))

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
        return self._match_model

    def save(self, folder: str | Path) -> None:
        """Write the head to a folder: numbers in `retrofit.safetensors`, everything else in `retrofit.json`.

        Args:
            folder: made if need be; files of a head in it are replaced.
        """
        self._require_fit()
        folder = Path(folder)
        make_folder(folder)
        tensors = {f"head.{name}": t for name, t in self._head.state_dict().items()}
        tensors |= {f"novelty.{name}": t for name, t in self._novelty.state_dict().items()}
        content = {
            "format": FORMAT,
            "parameters": self.get_params(),
            "head": _described(self._head),
            "kept": len(self._novelty.known),
            "match_model": self._match_model.describe(),
            "doubt": list(self._doubt),
            "report": self.report_.as_dict(),
        }
        numbers = save({name: t.contiguous() for name, t in tensors.items()})
        write_atomically(folder / WEIGHTS, lambda part: part.write_bytes(numbers))
        write_json(folder / DESCRIPTION, content)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The head that `save` wrote.

        Args:
            folder: where it is.
        """
        folder = Path(folder)
        try:
            content = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
            tensors = load_file(folder / WEIGHTS)
        except FileNotFoundError as error:
            raise RunError(
                f"{folder} holds no head ({error.filename} is missing): fit one and head.save({str(folder)!r})"
            ) from error
        except (OSError, ValueError, SafetensorError) as error:
            raise RunError(
                f"the head in {folder} cannot be read ({error}): save it again or restore the files"
            ) from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise RunError(f"{folder / DESCRIPTION} is of another format than {FORMAT}: use the version that wrote it")
        head = cls(**content["parameters"])
        head._head = _rebuilt(content["head"])
        head._novelty = NeighbourDistance(head._head.features, content["kept"])
        try:
            head._head.load_state_dict(_under("head.", tensors))
            head._novelty.load_state_dict(_under("novelty.", tensors))
        except RuntimeError as error:
            raise RunError(f"{folder / WEIGHTS} holds the numbers of another head ({error}): save it again") from error
        head._head.eval().requires_grad_(False)
        described = content["match_model"]
        head._match_model = Evidence(described["log_odds"], described["temper"]).requires_grad_(False)
        head._doubt = tuple(content["doubt"])
        told = content["report"]
        compared = tuple(Measured(**m) for m in told.pop("compared"))
        head.report_ = Report(compared=compared, notes=tuple(told.pop("notes")), **told)
        head.n_features_in_ = head._head.features
        return head

    def _check_settings(self) -> None:
        wrong = [
            ("dim", self.dim, '"auto" or an integer from 1 up', self.dim == "auto" or _is_count(self.dim)),
            ("axes", self.axes, "an integer from 1 up", _is_count(self.axes)),
            ("ridge", self.ridge, '"auto" or a positive number', self.ridge == "auto" or _is_positive(self.ridge)),
            ("steps", self.steps, "an integer from 1 up", _is_count(self.steps)),
            ("noise", self.noise, "a number from 0 up", self.noise == 0 or _is_positive(self.noise)),
        ]
        for name, value, expected, is_right in wrong:
            if not is_right:
                raise ConfigError(f"Retrofit takes {expected} as {name}, got {name}={value!r}")

    def _fitted(self, x: NDArray[np.float32], poor: NDArray[np.float32], y: NDArray[np.intp], plan: Plan) -> Fitted:
        threads = torch.get_num_threads()
        if not self.verbose:
            return Fitting(x, poor, y, plan, lambda words: None).result()
        done = 0
        with progress("Fitting", STEPS_TOLD) as update:

            def tell(words: str) -> None:
                nonlocal done
                update(min(done, STEPS_TOLD), words)
                done += 1

            result = Fitting(x, poor, y, plan, tell).result()
            update(STEPS_TOLD, f"{result.way} on {threads} threads")
        return result

    def _report(self, fitted: Fitted, y: NDArray[np.intp], is_given: bool, seconds: float) -> Report:
        identities = int(y.max()) + 1
        notes = []
        if not is_given:
            notes.append("Poorer vectors were made of X by dropping features and adding noise; real ones teach more.")
        if not fitted.way.startswith("evidence"):
            reason = (
                f"{identities} identities are too few to train on ({LEAST_IDENTITIES} is the least)"
                if identities < LEAST_IDENTITIES
                else "it was ahead on held-out identities"
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

    def _fitted_part(self, x: torch.Tensor, part: torch.nn.Module) -> torch.Tensor:
        result: torch.Tensor = part(x)
        return result

    def _require_fit(self) -> None:
        if not hasattr(self, "_head"):
            raise NotFittedError("this Retrofit is not fitted yet: call fit(X, y) first, or Retrofit.load(folder)")


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and 0 < float(value) < float("inf")


def _described(head: EvidenceHead) -> dict[str, Any]:
    branches = [branch for branch in head.branches if isinstance(branch, Branch)]
    return {
        "features": head.features,
        "axes": head.front.axes,
        "unit": head.front.unit,
        "branches": [branch.described() for branch in branches],
    }


def _rebuilt(described: dict[str, Any]) -> EvidenceHead:
    front = Front(described["features"], described["axes"], described["unit"])
    return EvidenceHead(front, [Branch(**branch) for branch in described["branches"]])


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
