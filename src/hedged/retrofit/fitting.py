"""How a head is fitted: directions, a quality network, and what held-out identities say of them.

1. The front makes vectors alike, from all of them and their poorer views.
2. Identities are dealt out to four folds; each is seen through directions that were found without it. Inputs are dealt
   out instead where later ones show the identities that were fitted to.
3. Branches learn how much evidence there is: one with projections as long as they are, one with projections of one
   length and, given enough identities, one that learns its directions too. They learn on two folds and are judged on
   the other two, and the other way round, so that every identity is held out once. Two branches learn nothing of single
   inputs: the cosine of the vectors, and that of many directions, where new identities may differ. Log Bayes factors
   add up, each with the gain that held-out pairs give it (`blend.py`): ensembles are judged at little cost.
4. The simpler ways are judged on the same folds. If one is clearly ahead, it is taken instead; with few identities it
   has to be ahead of the cosine by a margin, and with very few the cosine is taken.
5. If it pays on the held-out pairs, strangers tell how rare an input is.
6. What was taken is fitted to all identities, and its log-odds are calibrated on the held-out pairs: of vectors as they
   are and of their poorer views, if these are real. What was made up does not tell where real ones lie.
7. Beyond the vectors that taught, evidence fades: what was learnt need not hold there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.errors import DataError
from hedged.models.evidence.asides import ASIDE
from hedged.models.evidence.front import SIGNS, Front, nearness
from hedged.models.evidence.head import Branch, EvidenceHead, side_by_side
from hedged.models.evidence.plda import Directions, directions
from hedged.models.evidence.strangers import Strangers
from hedged.retrofit import simple
from hedged.retrofit.blend import blended, fit_blend
from hedged.retrofit.calibrate import Line, fit_line
from hedged.retrofit.crossfit import Fold, Training, Views, one_thread, train_projection, train_quality
from hedged.retrofit.decline import decline
from hedged.retrofit.degrade import poorer_vectors
from hedged.retrofit.doubt import fit_doubt
from hedged.retrofit.folds import identity_folds, input_folds
from hedged.retrofit.select import Measured, Pairs, held_out_pairs, measure

Floats = NDArray[np.float32]
Ints = NDArray[np.intp]

FOLDS = 4
SEEN_AXES = 50  # leading principal axes that the quality network sees, at most
IDENTITIES_AN_AXIS = 10  # identities that it takes to learn what an axis says of quality
HIDDEN = 32  # its hidden units
GROUPS = 8  # of like evidence, in a branch
LEAST_IDENTITIES = 20  # to train on, or to choose by; with fewer, the cosine is taken
MANY_IDENTITIES = 50  # to learn directions from
INPUTS = "inputs"
INPUTS_AN_IDENTITY = 5  # that count as much as an identity where inputs are held out
WORTH_OF_UNCERTAINTY = 0.01  # of merit: what a simpler way, which has none that tells, has to be ahead by
LEAST_DIRECTION = 0.02  # evidence of a direction that is worth a dimension
MOST_DIMS = 128  # of a branch, unless told
UNIT_DIMS = 64  # of one whose projections have one length: beyond, they are mostly noise
WIDE_DIMS = 200  # of the two branches without a quality network
UNSEEN = 0.1  # of the mean variance between identities: what new ones may differ by in every direction
# PLDA as it is; with a quality network; the same with projections of one length; with directions that are learnt too.
BRANCHES = ("plain", "own", "unit", "learnt")
EVIDENCE = "evidence "  # how the names of blended branches begin
STEADY = ("wide", "cosine")  # the same evidence for all inputs
KINDS = BRANCHES + STEADY
TRAINED_SETS = (("own", "unit"), ("plain", "unit"), ("unit", "learnt"))
STEADY_SETS: tuple[tuple[str, ...], ...] = ((), ("wide",), ("cosine",), ("wide", "cosine"))
ENSEMBLES = tuple(trained + steady for trained in TRAINED_SETS for steady in STEADY_SETS)
LEARNT_AXES, LEARNT_HIDDEN, LEARNT_RIDGE = 200, 128, 1.0
LEARNT_STEPS = 150  # in percent of those of a quality network
RIDGES = (0.3, 1.0, 3.0, 10.0)
LDA_DIMS = (20, 50, 100)
MOST_STRANGERS = 1024
MOST_KNOWN = 2048  # vectors that say how near an input is to others
FARTHEST_TAUGHT = 0.05  # share of real vectors that are farther from others than what counts as known
LEAST_SPREAD = 1e-3  # of nearness, a cosine
MARGIN = 0.5  # over the number of identities: what a way has to be ahead of the cosine by


@final
@dataclass(frozen=True)
class Plan:
    """What to fit.

    Args:
        dim: dimensions of a branch, or None to choose.
        axes: principal axes of the front.
        ridge: of the directions, or None to choose.
        branches: kinds of branches to take, or None to choose.
        strangers: whether strangers tell how rare an input is, or None to choose.
        held_out: what is held out in turn, "identities" or "inputs".
        training: of the quality network.
        seed: of folds, batches and noise.
    """

    dim: int | None
    axes: int
    ridge: float | None
    branches: tuple[str, ...] | None
    strangers: bool | None
    held_out: str
    training: Training
    seed: int


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """A head with its calibration, and how it came to be.

    Args:
        way: the name of what was chosen.
        head: vectors to Gaussians.
        line: c and κ of its log-odds.
        doubt: c and κ of the log-odds that pairs with an input are decided rightly, given its log Bayes factor with
            itself; the head adds its clarity.
        compared: what each way reached on held-out identities.
        settings: of the head.
    """

    way: str
    head: EvidenceHead
    line: Line
    doubt: Line
    compared: tuple[Measured, ...]
    settings: dict[str, Any]


class Best(NamedTuple):
    """The best way so far: what it reached, its held-out pairs, c and κ, and whether strangers are heard."""

    measured: Measured
    pairs: Pairs
    line: Line
    is_heard: bool = False


@final
class Fitting:
    """One fit, step by step; `result` goes through them all.

    Args:
        x: vectors, (n, F).
        poor: poorer views of the same rows; None: they are made of x.
        y: identities, (n,), numbered from 0 without gaps.
        plan: what to fit.
        tell: called with words when a step begins.
    """

    def __init__(self, x: Floats, poor: Floats | None, y: Ints, plan: Plan, tell: Callable[[str], None]) -> None:
        self._plan, self._y, self._tell = plan, y, tell
        self._x, self._poor = x, poorer_vectors(x, plan.seed) if poor is None else poor
        tell("principal axes")
        self._front = Front.fitted(np.concatenate([x, self._poor]), plan.axes, unit=True)
        with torch.no_grad():
            self._views, self._poor_views = (Views(*self._front(torch.from_numpy(v))) for v in (x, self._poor))
        self._is_poor_real = poor is not None
        self._real_views = [self._views, self._poor_views] if self._is_poor_real else [self._views]
        self._identities = int(y.max()) + 1
        self._units = self._identities  # what is held out: chance plays with so many
        folds = list(identity_folds(y, FOLDS, plan.seed))
        if plan.held_out == INPUTS:
            folds, self._units = list(input_folds(y, FOLDS, plan.seed)), len(y) // INPUTS_AN_IDENTITY
        self._learn_signs(folds)
        self._seen = min(SEEN_AXES, self._units // IDENTITIES_AN_AXIS)
        self._kinds = plan.branches or (BRANCHES if self._units >= MANY_IDENTITIES else BRANCHES[:3]) + STEADY
        self._held = [held for held in folds if _has_pairs(y[held])]
        self._held = self._held or [np.ones(len(y), dtype=bool)]

    def result(self) -> Fitted:
        """The head that is best on held-out identities."""
        ridge, folds = self._chosen_ridge()
        ways: dict[str, list[Pairs]] = {}
        taught: dict[str, list[Branch]] = {}
        if self._plan.branches is None:
            ways = {way: [pairs] for way, pairs in self._simple_ways(folds)}
        is_trainable = self._units >= LEAST_IDENTITIES and len(folds) == FOLDS
        if self._plan.branches and not is_trainable:
            raise DataError(
                f"{self._identities} identities are too few to train {EVIDENCE}{'+'.join(self._kinds)}: it takes "
                f"{LEAST_IDENTITIES}, with two vectors or more each. Leave branches out, and the best way is found"
            )
        if is_trainable:
            taught = self._taught(folds)
            ways |= self._ensembles({kind: self._pairs(folds, [[b] for b in of]) for kind, of in taught.items()})
        self._tell("comparing")
        blends = {way: fit_blend(parts) for way, parts in ways.items()}
        pairs = {way: blended(parts, blends[way].gains) for way, parts in ways.items()}
        compared = sorted((measure(way, pairs[way]) for way in ways), key=lambda m: -m.merit)
        chosen = self._choose(compared)
        best, blend = Best(chosen, pairs[chosen.way], Line(*blends[chosen.way][:2])), blends[chosen.way]
        if chosen.way.startswith(EVIDENCE):
            by_fold = [
                [scaled(taught[kind][k], gain) for kind, gain in zip(_kinds(chosen.way), blend.gains, strict=True)]
                for k in range(len(folds))
            ]
            if self._plan.strangers is not False:
                heard = self._heard(best, folds, by_fold)
                compared = sorted([*compared, heard.measured], key=lambda m: -m.merit)
                best = heard if self._plan.strangers or heard.measured.merit > best.measured.merit else best
        line = best.line if self._is_poor_real else self._line_without_poor(best)
        self._tell("all identities")
        found = self._directions(np.ones(len(self._y), dtype=bool), ridge)
        front, fitted = self._fit(chosen.way, found, ridge, folds)
        branches = [scaled(branch, gain) for branch, gain in zip(fitted, blend.gains, strict=True)]
        strangers = self._strangers(branches, None, blend.temper) if best.is_heard else None
        settings = {
            "ridge": ridge,
            "axes": self._front.axes,
            "branches": "+".join(_kinds(chosen.way)) if chosen.way.startswith(EVIDENCE) else "auto",
            "strangers": best.is_heard,
            "held_out": self._plan.held_out,
        }
        if front is self._front:
            self._bound_what_is_known()
        doubt, clarity = fit_doubt(best.pairs, line)
        return Fitted(
            way=best.measured.way,
            head=EvidenceHead(front, branches, strangers, torch.tensor(clarity).float() if any(clarity) else None),
            line=line,
            doubt=doubt,
            compared=tuple(compared),
            settings=settings,
        )

    @torch.no_grad()
    def _learn_signs(self, folds: list[NDArray[np.bool_]]) -> None:
        """What worse inputs look like, and vectors to be near to: those of a fold are judged by the other folds."""
        views, front = [self._views, self._poor_views], self._front
        for held in (held for held in folds if not held.all()):
            e, known = self._signs_of(~held)
            for view in views:
                view.signs[held, 1] = view.u[held] @ e
                view.signs[held, 2] = nearness(view.u[held], known)
        front.decline, front.known = self._signs_of(np.ones(len(self._y), dtype=bool))
        front.usual = self._views.signs[:, 2].mean()
        for view in views:
            view.signs[:, 2] -= front.usual

    def _bound_what_is_known(self) -> None:
        """Past the farthest twentieth of the real vectors, seen from other identities, evidence fades."""
        near = torch.cat([view.signs[:, 2] for view in self._real_views])
        self._front.least = near.quantile(FARTHEST_TAUGHT)
        self._front.spread = near.std().clamp(min=LEAST_SPREAD)

    def _signs_of(self, among: NDArray[np.bool_]) -> tuple[torch.Tensor, torch.Tensor]:
        """The direction in which these rows get worse, and some of their vectors."""
        known = self._views.u[torch.from_numpy(drawn_in_turn(self._y, among, self._plan.seed)[:MOST_KNOWN])]
        e = decline(*(view.u[torch.from_numpy(among)].numpy() for view in (self._views, self._poor_views)))
        return torch.tensor(e).float(), known

    def _directions(
        self, rows: NDArray[np.bool_], ridge: float, axes: int | None = None, unseen: float = 0.0
    ) -> Directions:
        parts = [self._views, self._poor_views]
        u = np.concatenate([part.u.numpy()[rows, :axes] for part in parts]).astype(np.float64)
        y = np.concatenate([self._y[rows]] * len(parts))
        return directions(u, np.unique(y, return_inverse=True)[1].reshape(-1), ridge, unseen)

    def _folds(self, ridge: float) -> list[Fold]:
        made = []
        for held in (held for held in self._held if _has_pairs(self._y[~held])):
            rows = np.flatnonzero(held)
            poor = self._poor_views.take(rows)
            wide = self._directions(~held, ridge, unseen=UNSEEN)
            made.append(Fold(self._directions(~held, ridge), wide, self._views.take(rows), poor, self._y[rows]))
        return made

    def _chosen_ridge(self) -> tuple[float, list[Fold]]:
        """The ridge by which PLDA with projections of one length is best, and the folds of it."""
        self._tell("directions")
        tried = RIDGES if self._plan.ridge is None else (self._plan.ridge,)
        found = {ridge: self._folds(ridge) for ridge in tried}
        if len(tried) == 1 or not found[tried[0]]:
            return tried[0], found[tried[0]]
        merit = {
            r: measure("", self._pairs(folds, [[self._start(f.found, False)] for f in folds])).merit
            for r, folds in found.items()
        }
        best = max(merit, key=lambda ridge: merit[ridge])
        return best, found[best]

    def _dim(self, found: Directions) -> int:
        worth = int((found.evidence > LEAST_DIRECTION).sum())
        return max(min(self._plan.dim or MOST_DIMS, worth), 1)

    def _start(self, found: Directions, unit: bool, groups: int | None = None) -> Branch:
        """A branch that has not learnt, of as many groups as another, if told: the worth of directions varies."""
        dim = min(self._dim(found), UNIT_DIMS) if unit else self._dim(found)
        return simple.started(found, max(dim, groups or 1), groups or GROUPS, unit, HIDDEN, self._seen)

    @torch.no_grad()
    def _pairs(self, folds: list[Fold], branches: list[list[Branch]], sharpness: float = 0.0) -> Pairs:
        """Held-out pairs of all folds, each embedded by its own branches; strangers are heard if told."""
        parts = []
        for k, (fold, made) in enumerate(zip(folds, branches, strict=True)):
            strangers = self._strangers(made, k, sharpness) if sharpness else None
            head = EvidenceHead(self._front, made, strangers)
            seen = [(head.of_front(*view), view.signs) for view in (fold.views, fold.poor)]
            parts.append(held_out_pairs(seen, fold.y, ASIDE if strangers else 0.0))
        return Pairs.together(parts)

    @torch.no_grad()
    def _strangers(self, branches: list[Branch], held: int | None, sharpness: float) -> Strangers:
        """Vectors of many identities, half of them poorer; for a fold that is held out, of those learnt from."""
        known = np.ones(len(self._y), dtype=bool)
        if held is not None:
            known = np.any([self._held[k] for k in self._half_without(held)], axis=0)
        views = [self._views, self._poor_views]
        rows = drawn_in_turn(self._y, known, self._plan.seed)
        each = min(MOST_STRANGERS // len(views), len(rows))
        parts = [view.take(np.roll(rows, -each * k)[:each]) for k, view in enumerate(views)]
        seen = Views(*(torch.cat(column) for column in zip(*parts, strict=True)))
        return Strangers.of(side_by_side([branch(*seen) for branch in branches]), sharpness)

    def _half_without(self, held: int) -> range:
        """The folds that a branch learns from which is judged on one of the others."""
        middle = len(self._held) // 2
        return range(middle, len(self._held)) if held < middle else range(middle)

    def _heard(self, best: Best, folds: list[Fold], by_fold: list[list[Branch]]) -> Best:
        """The same with strangers that tell how rare an input is."""
        self._tell("strangers")
        pairs = self._pairs(folds, by_fold, best.line.temper)
        line = fit_line(pairs.factors, pairs.matches, pairs.weights, best.line.temper)
        return Best(measure(f"{best.measured.way}, strangers", pairs), pairs, line, is_heard=True)

    def _line_without_poor(self, best: Best) -> Line:
        """c and κ by the vectors as they are alone."""
        pairs = best.pairs.of(False)
        return fit_line(pairs.factors, pairs.matches, pairs.weights, best.line.temper)

    @torch.no_grad()
    def _simple_ways(self, folds: list[Fold]) -> Iterator[tuple[str, Pairs]]:
        self._tell("the simpler ways")
        head = EvidenceHead(*simple.cosine(self._x.shape[1]))
        parts = []
        for held in self._held:
            views = [self._x[held], self._poor[held]]
            silent = torch.zeros(len(views[0]), SIGNS)
            parts.append(held_out_pairs([(head(torch.from_numpy(view)), silent) for view in views], self._y[held]))
        yield "cosine", Pairs.together(parts)
        if not folds:
            return
        most = min(len(fold.found.evidence) for fold in folds)
        for dim in (d for d in LDA_DIMS if d <= most or d == LDA_DIMS[0]):
            yield f"lda-{dim}", self._pairs(folds, [[simple.lda(fold.found, dim)] for fold in folds])
        yield "plda", self._pairs(folds, [[simple.plda(fold.found, self._dim(fold.found))] for fold in folds])

    def _steady(self, kind: str, found: Directions) -> Branch:
        """A branch in which all inputs have the same evidence."""
        dim = self._plan.dim or WIDE_DIMS
        if kind == "wide":
            return simple.wide(found, dim)
        return simple.centred_cosine(self._front, self._views.u.double().numpy(), dim)

    def _taught(self, folds: list[Fold]) -> dict[str, list[Branch]]:
        """Branches of every kind, one for each fold, which have seen nothing of it."""
        found: dict[str, list[Branch]] = {kind: [] for kind in self._kinds}
        for judged in (0, len(folds) - 1):
            taught = self._half_without(judged)
            rows = np.any([self._held[k] for k in taught], axis=0)
            for kind in (kind for kind in self._kinds if kind not in STEADY):
                branch = self._trained(kind, [folds[k] for k in taught], rows)
                others = [fold for k, fold in enumerate(folds) if k not in taught]
                found[kind] += [branch if kind == "learnt" else branch.placed_on(fold.found) for fold in others]
        for kind in (kind for kind in self._kinds if kind in STEADY):
            found[kind] = [self._steady(kind, fold.wide) for fold in folds]
        return found

    def _trained(self, kind: str, folds: list[Fold], rows: NDArray[np.bool_]) -> Branch:
        """A branch of one kind, trained on some folds, which hold these rows."""
        self._tell(f"evidence, {kind}")
        plan = self._plan
        with torch.random.fork_rng(devices=[]), one_thread():
            torch.manual_seed(plan.seed)
            if kind == "learnt":
                branch = self._learnt_start(rows)
                views, poor = (v.take(np.flatnonzero(rows)) for v in (self._views, self._poor_views))
                how = replace(plan.training, steps=plan.training.steps * LEARNT_STEPS // 100)
                train_projection(branch, views, poor, self._y[rows], how, plan.seed)
            else:
                narrowest = min(folds, key=lambda f: self._dim(f.found)).found
                branch = self._start(narrowest, unit=kind == "unit")
            if kind in ("own", "unit"):
                train_quality(branch, folds, plan.training, plan.seed)
        return branch.requires_grad_(False)

    def _learnt_start(self, rows: NDArray[np.bool_]) -> Branch:
        """PLDA on the leading axes, with as much ridge as the noise will be."""
        found = self._directions(rows, LEARNT_RIDGE, LEARNT_AXES)
        dim = max(min(self._plan.dim or MOST_DIMS, len(found.evidence)), 1)
        return simple.started(found, dim, GROUPS, False, LEARNT_HIDDEN, LEARNT_AXES, varied=True)

    def _ensembles(self, each: dict[str, Pairs]) -> dict[str, list[Pairs]]:
        """Pairs of several branches side by side."""
        sets = (
            [kinds for kinds in ENSEMBLES if set(kinds) <= each.keys()]
            if self._plan.branches is None
            else [self._kinds]
        )
        return {EVIDENCE + "+".join(kinds): [each[kind] for kind in kinds] for kinds in sets}

    def _choose(self, compared: list[Measured]) -> Measured:
        if self._plan.branches:
            return compared[0]
        cosine = next(m for m in compared if m.way == "cosine")
        if self._units < LEAST_IDENTITIES:
            return cosine  # held-out pairs of so few identities cannot tell which way is better
        best = compared[0] if compared[0].merit > cosine.merit + MARGIN / self._units else cosine
        trained = next((m for m in compared if m.way.startswith(EVIDENCE)), None)
        return trained if trained and trained.merit >= best.merit - WORTH_OF_UNCERTAINTY else best

    def _fit(self, way: str, found: Directions, ridge: float, folds: list[Fold]) -> tuple[Front, list[Branch]]:
        """What was chosen, fitted to all identities."""
        if way == "cosine":
            return simple.cosine(self._x.shape[1])
        if way.startswith("lda"):
            return self._front, [simple.lda(found, int(way.removeprefix("lda-")))]
        if way == "plda":
            return self._front, [simple.plda(found, self._dim(found))]
        branches = []
        everything = np.ones(len(self._y), dtype=bool)
        for kind in _kinds(way):
            if kind in STEADY:
                wide = self._directions(everything, ridge, unseen=UNSEEN)
                branches.append(self._steady(kind, wide).requires_grad_(False))
                continue
            branch = self._trained(kind, folds, everything)
            if kind != "learnt":
                branch = branch.moved_to(self._start(found, kind == "unit", groups=len(branch.log_shift)))
            branches.append(branch)
        return self._front, branches


def scaled(branch: Branch, gain: float) -> Branch:
    """The branch with a gain: means √gain times as long.

    Args:
        branch: left as it is.
        gain: how far its means are trusted, among others.
    """
    made = copy.deepcopy(branch)
    made.scale = made.scale * gain**0.5
    return made


def drawn_in_turn(y: Ints, among: NDArray[np.bool_], seed: int) -> Ints:
    """Rows in random order, one of every identity, then a second of every identity, and so on.

    Args:
        y: identities, (n,).
        among: which rows to take, (n,).
        seed: of the order.

    >>> y = np.array([0, 0, 0, 1, 2])
    >>> sorted(y[drawn_in_turn(y, np.ones(5, dtype=bool), seed=0)[:3]].tolist())
    [0, 1, 2]
    """
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(among))
    order = np.argsort(y[rows], kind="stable")
    owners = y[rows][order]
    turn = np.empty(len(rows), dtype=np.intp)
    turn[order] = np.arange(len(rows)) - np.searchsorted(owners, owners)
    return rows[np.argsort(turn, kind="stable")]


def _kinds(way: str) -> tuple[str, ...]:
    """The kinds of branches in the name of an ensemble."""
    return tuple(way.removeprefix(EVIDENCE).split("+"))


def _has_pairs(y: Ints) -> bool:
    """Whether there are two identities or more, and two vectors of one of them."""
    _, counts = np.unique(y, return_counts=True)
    return len(counts) > 1 and int(counts.max()) > 1
