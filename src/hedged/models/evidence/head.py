"""A vector becomes a Gaussian: where its identity is, and how much the vector tells of it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, Self, final

import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from hedged._section import Section, Width
from hedged.distributions import Gaussian
from hedged.errors import ConfigError, ShapeError
from hedged.models.evidence.asides import beside
from hedged.models.evidence.front import SIGNS, Front
from hedged.models.evidence.strangers import Strangers
from hedged.models.heads import Head

FARTHEST = 6.0  # in natural logarithms, from the common evidence to that of one input
SIGN_GAIN = 15.0  # signs of quality vary little beside other features; the network sees them so many times larger
REACH_GAIN = 5.0  # the same for the length of a projection


class Directions(Protocol):
    """What a branch starts from: directions in which identities differ, as `hedged.models.evidence.plda` finds them."""

    @property
    def weight(self) -> NDArray[Any]:
        """A direction a column, (F, D)."""
        ...

    @property
    def evidence(self) -> NDArray[Any]:
        """The variance between identities in each of them, (D,)."""
        ...

    @property
    def centre(self) -> NDArray[Any]:
        """What is subtracted from vectors first, (F,)."""
        ...

    def first(self, count: int) -> Directions:
        """The best of them."""
        ...


@final
class BranchShape(Section):
    """What a `Branch` is made of again, in words: the arguments of its constructor.

    Args:
        axes: P, the leading principal axes that are looked at.
        dim: D, a multiple of `groups`.
        groups: K, the groups of like evidence.
        unit: whether projections are brought to one length.
        hidden: hidden units of the network that tells the evidence; 0: there is none.
        seen: the leading numbers of a vector that it sees.
        varied: whether it has an output for each group.
    """

    axes: Width
    dim: Width
    groups: Width
    unit: bool
    hidden: Annotated[int, Field(ge=0, le=2**16)] = 0
    seen: Annotated[int, Field(ge=0, le=2**16)] = 0
    varied: bool = False


@final
class EvidenceShape(Section):
    """What an `EvidenceHead` is made of again, in words.

    Args:
        axes: P, the principal axes of the front.
        unit: whether the front brings vectors to one length.
        known: how many vectors the front knows.
        branches: one or more.
        strangers: how many tell how rare an input is; 0: the embedding does not say.
        sharpness: how far a ratio with one of them is trusted.
        clarity: whether the embedding says how clear an input is.
    """

    axes: Width
    unit: bool
    known: Annotated[int, Field(ge=0, le=2**16)] = 0
    strangers: Annotated[int, Field(ge=0, le=2**16)] = 0
    sharpness: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    clarity: bool = False
    branches: Annotated[tuple[BranchShape, ...], Field(strict=False, min_length=1, max_length=64)]

    @property
    def latent(self) -> int:
        """The dimensions of the branches together."""
        return sum(branch.dim for branch in self.branches)

    @property
    def dim(self) -> int:
        """The dimensions of an embedding: one more where it says how rare an input is, and one how clear."""
        return self.latent + bool(self.strangers) + self.clarity


@final
class Branch(nn.Module):
    """u ↦ N(μ, σ²) with σ² = 1/(1 + λ) and μ = (1 − σ²)·m, λ = λ₀·exp(a + g(x)) and m = s ∘ e^b ∘ n(h), h = Vᵀ(u − c).

    λ is the evidence of the vector, m where it puts the identity; without evidence the Gaussian is the prior N(0, I).
    V, λ₀ and s are those of PLDA (`start_from`), and n brings h to one length, if told. Dimensions come in K groups of
    like evidence. a, b and the small network g are learnt (`hedged.retrofit.crossfit`) and zero at the start: then the
    branch is PLDA, or the cosine if h has one length and all dimensions the same evidence.

    Args:
        axes: P, the leading principal axes that are looked at.
        dim: D, a multiple of `groups`.
        groups: K.
        unit: whether h is brought to one length.
        hidden: hidden units of g; 0: λ is the same for all inputs.
        seen: the leading numbers of u that g sees, beside the signs of quality and the length of h.
        varied: whether g has an output for each group, not one for all.
    """

    weight: Tensor
    centre: Tensor
    log_evidence: Tensor
    scale: Tensor
    reach: Tensor

    def __init__(
        self, axes: int, dim: int, groups: int, unit: bool, hidden: int = 0, seen: int = 0, varied: bool = False
    ) -> None:
        super().__init__()
        self.unit, self.seen, self.varied = unit, min(seen, axes), varied
        self.register_buffer("weight", torch.zeros(axes, dim))
        self.register_buffer("centre", torch.zeros(axes))
        self.register_buffer("log_evidence", torch.zeros(groups))
        self.register_buffer("scale", torch.ones(dim))
        self.register_buffer("reach", torch.ones(()))
        self.log_gain = nn.Parameter(torch.zeros(dim))
        self.log_shift = nn.Parameter(torch.zeros(groups))
        self.quality: nn.Sequential | None = None
        if hidden:
            last = nn.Linear(hidden, groups if varied else 1)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            self.quality = nn.Sequential(nn.Linear(self.seen + SIGNS + 1, hidden), nn.ReLU(), last)

    def start_from(self, found: Directions) -> None:
        """Set V, c, λ₀ and s to those of PLDA; the evidence of a group is that of its dimensions, on average.

        Args:
            found: directions in the space of u, as many as there are dimensions.
        """
        evidence = torch.tensor(found.evidence.copy()).float()
        shared = evidence.view(len(self.log_evidence), -1).mean(1)
        spread = 1 + 1 / shared.repeat_interleave(len(evidence) // len(shared))  # of m, over all inputs
        self.weight = torch.tensor(found.weight.copy()).float()
        self.centre = torch.tensor(found.centre.copy()).float()
        self.log_evidence = shared.log()
        self.scale = (spread / (1 + evidence)).sqrt()
        self.reach = (1 + evidence).mean().sqrt()

    @property
    def shape(self) -> BranchShape:
        """What its constructor takes."""
        return BranchShape(
            axes=len(self.weight),
            dim=self.dim,
            groups=len(self.log_evidence),
            unit=self.unit,
            hidden=0 if self.quality is None else int(self.quality[0].out_features),  # type: ignore[arg-type]
            seen=self.seen,
            varied=self.varied,
        )

    def placed_on(self, found: Directions) -> Branch:
        """What this branch has learnt, on the best of other directions: a copy.

        Args:
            found: at least as many directions as there are dimensions, best first.
        """
        other = copy.deepcopy(self)
        other.start_from(found.first(self.dim))
        return other

    def moved_to(self, other: Branch) -> Branch:
        """What this branch has learnt, on the directions of another, which may have more dimensions in as many groups.

        Args:
            other: a branch that has not learnt; it is changed and returned.
        """
        if len(other.log_shift) != len(self.log_shift):
            raise ShapeError(f"{len(self.log_shift)} groups of dimensions cannot become {len(other.log_shift)}")
        with torch.no_grad():
            gains = torch.nn.functional.interpolate(self.log_gain[None, None], size=other.dim, mode="linear")
            other.log_gain.copy_(gains[0, 0])
            other.log_shift.copy_(self.log_shift)
        if self.quality is not None and other.quality is not None:
            other.quality.load_state_dict(self.quality.state_dict())
        return other.requires_grad_(False)

    @property
    def dim(self) -> int:
        """D."""
        return int(self.weight.shape[1])

    @property
    def groups(self) -> list[slice]:
        """The dimensions of each group."""
        each = self.dim // len(self.log_evidence)
        return [slice(start, start + each) for start in range(0, self.dim, each)]

    def forward(self, u: Tensor, signs: Tensor) -> Gaussian:
        """The Gaussians of vectors on their principal axes, `(n, ≥ P)`, with their signs of quality, `(n, 3)`."""
        u = u[:, : len(self.weight)]
        return self.of_projection((u - self.centre) @ self.weight, u[:, : self.seen], signs)

    def of_projection(self, h: Tensor, seen: Tensor, signs: Tensor) -> Gaussian:
        """The Gaussians of projected vectors.

        Args:
            h: projections, (n, D).
            seen: what g sees of u, (n, seen).
            signs: of quality, (n, 3).
        """
        reach = (h.square().mean(1, keepdim=True) + 1e-12).sqrt() / self.reach
        log_evidence = (self.log_evidence + self.log_shift).expand(h.shape[0], -1)
        if self.quality is not None:
            told = self.quality(torch.cat([seen, SIGN_GAIN * signs, REACH_GAIN * reach.log()], dim=1))
            log_evidence = log_evidence + FARTHEST * torch.tanh(told / FARTHEST)
        m = (h / reach if self.unit else h) * (self.scale * self.log_gain.exp())
        each = self.dim // len(self.log_evidence)
        share = log_evidence.sigmoid().repeat_interleave(each, dim=1)  # λ/(1 + λ) = 1 − σ²
        return Gaussian(m * share, (-log_evidence).sigmoid().repeat_interleave(each, dim=1))


@final
class EvidenceHead(Head, kind="evidence"):
    """x ↦ N(μ, σ²): branches side by side, their dimensions one after the other, so that log Bayes factors add up.

    A match model that tempers them by one over their number has their average: an ensemble in one embedding. What was
    learnt holds for inputs like those that taught. The evidence of a stranger one falls by e with each deviation.

    Args:
        front: what makes vectors alike, F numbers to P.
        branches: one or more.
        strangers: whose embeddings tell how rare an input is, beside the embedding; None: there is none.
        clarity: (3,), what each sign of quality adds to the log-odds that an input is understood; beside the embedding,
            after the rarity. None: it is not said.
    """

    clarity: Tensor | None

    def __init__(
        self,
        front: Front,
        branches: Sequence[Branch],
        strangers: Strangers | None = None,
        clarity: Tensor | None = None,
    ) -> None:
        shape = EvidenceShape(
            axes=front.axes,
            unit=front.unit,
            known=len(front.known),
            strangers=len(strangers.mean) if strangers else 0,
            sharpness=strangers.sharpness if strangers else 1.0,
            clarity=clarity is not None,
            branches=tuple(branch.shape for branch in branches),
        )
        super().__init__(features=len(front.mean), dim=shape.dim)
        self.shape, self.front, self.branches, self.strangers = shape, front, nn.ModuleList(branches), strangers
        self.register_buffer("clarity", clarity)

    @classmethod
    def blank(cls, features: int, shape: EvidenceShape) -> Self:
        """A head to be filled with saved weights.

        Args:
            features: F, the width of the vectors.
            shape: of the front and of each branch.
        """
        front = Front(features, shape.axes, shape.unit, shape.known)
        branches = [Branch(**branch.model_dump()) for branch in shape.branches]
        strangers = Strangers(shape.strangers, shape.latent, shape.sharpness) if shape.strangers else None
        return cls(front, branches, strangers, torch.zeros(SIGNS) if shape.clarity else None)

    @classmethod
    def build(cls, features: int, dim: int, components: int) -> Self:
        raise ConfigError(
            'head = "evidence" is fitted to vectors, not trained: `hedged retrofit VECTORS --out RUN`, or '
            "Retrofit().fit(X, y). To train, choose another head"
        )

    def distribution(self, features: Tensor) -> Gaussian:
        return self.of_front(*self.front(features))

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "evidence": self.shape.model_dump()}

    def of_front(self, u: Tensor, signs: Tensor) -> Gaussian:
        """The Gaussians of vectors that the front has seen.

        Args:
            u: what the front makes of them, `(n, P)`.
            signs: of their quality, `(n, 3)`.
        """
        z = faded(side_by_side([branch(u, signs) for branch in self.branches]), self.front.strangeness(signs))
        if self.strangers is not None:
            z = self.strangers(z, groups_of(list(self.branches)))  # type: ignore[arg-type]
        return z if self.clarity is None else beside(z, signs @ self.clarity)


def side_by_side(embedded: Sequence[Gaussian]) -> Gaussian:
    """Embeddings of the same inputs as one, their dimensions one after the other.

    Args:
        embedded: one or more.
    """
    return Gaussian._unchecked(*(torch.cat([z.tensors[i] for z in embedded], dim=-1) for i in range(2)))


def faded(z: Gaussian, by: Tensor) -> Gaussian:
    """Embeddings whose evidence λ = 1/σ² − 1 is e^by times less, what they observed being where it was.

    Args:
        z: embeddings of n inputs, no wider than N(0, I).
        by: (n,), from 0 up.

    >>> z = faded(Gaussian(torch.tensor([[0.5]]), torch.tensor([[0.5]])), torch.tensor([3.0]).log())
    >>> z.mean, z.variance
    (tensor([[0.2500]]), tensor([[0.7500]]))
    """
    left = (-by).exp()[:, None]
    whole = z.variance + left * (1 - z.variance)
    return Gaussian._unchecked(z.mean * left / whole, z.variance / whole)


def groups_of(branches: Sequence[Branch]) -> list[slice]:
    """Which dimensions share a variance, where branches are side by side.

    Args:
        branches: one or more.
    """
    found, start = [], 0
    for branch in branches:
        found += [slice(start + group.start, start + group.stop) for group in branch.groups]
        start += branch.dim
    return found
