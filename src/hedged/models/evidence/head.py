"""A vector becomes a Gaussian: where its identity is, and how much the vector tells of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol, Self, final

import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from hedged._section import Section, Width
from hedged.distributions import Gaussian
from hedged.errors import ConfigError, ShapeError
from hedged.models.evidence.front import Front
from hedged.models.heads import Head

FARTHEST = 6.0  # in natural logarithms, from the common evidence to that of one input
LENGTH_GAIN = 5.0  # lengths vary little beside other features; the network sees them so many times larger


class Directions(Protocol):
    """What a branch starts from: directions in which identities differ, as `hedged.retrofit.plda` finds them."""

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
        branches: one or more.
    """

    axes: Width
    unit: bool
    branches: Annotated[tuple[BranchShape, ...], Field(strict=False, min_length=1)]


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
        seen: the leading numbers of u that g sees, beside the lengths of x and h.
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
            self.quality = nn.Sequential(nn.Linear(self.seen + 2, hidden), nn.ReLU(), last)

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

    def forward(self, u: Tensor, length: Tensor) -> Gaussian:
        """The Gaussians of vectors on their principal axes, `(n, ≥ P)`, of log length `(n, 1)`."""
        u = u[:, : len(self.weight)]
        return self.of_projection((u - self.centre) @ self.weight, u[:, : self.seen], length)

    def of_projection(self, h: Tensor, seen: Tensor, length: Tensor) -> Gaussian:
        """The Gaussians of projected vectors.

        Args:
            h: projections, (n, D).
            seen: what g sees of u, (n, seen).
            length: logarithms of the lengths of the vectors, (n, 1).
        """
        reach = (h.square().mean(1, keepdim=True) + 1e-12).sqrt() / self.reach
        log_evidence = (self.log_evidence + self.log_shift).expand(len(h), -1)
        if self.quality is not None:
            told = self.quality(torch.cat([seen, LENGTH_GAIN * length, LENGTH_GAIN * reach.log()], dim=1))
            log_evidence = log_evidence + FARTHEST * torch.tanh(told / FARTHEST)
        m = (h / reach if self.unit else h) * (self.scale * self.log_gain.exp())
        each = self.dim // len(self.log_evidence)
        share = log_evidence.sigmoid().repeat_interleave(each, dim=1)  # λ/(1 + λ) = 1 − σ²
        return Gaussian(m * share, (-log_evidence).sigmoid().repeat_interleave(each, dim=1))


@final
class EvidenceHead(Head, kind="evidence"):
    """x ↦ N(μ, σ²): branches side by side, their dimensions one after the other, so that log Bayes factors add up.

    A match model that tempers them by one over their number has their average: an ensemble in one embedding.

    Args:
        front: what makes vectors alike, F numbers to P.
        branches: one or more.
    """

    def __init__(self, front: Front, branches: Sequence[Branch]) -> None:
        super().__init__(features=len(front.mean), dim=sum(branch.dim for branch in branches))
        self.front, self.branches = front, nn.ModuleList(branches)
        self.shape = EvidenceShape(
            axes=front.axes, unit=front.unit, branches=tuple(branch.shape for branch in branches)
        )

    @classmethod
    def blank(cls, features: int, shape: EvidenceShape) -> Self:
        """A head to be filled with saved weights.

        Args:
            features: F, the width of the vectors.
            shape: of the front and of each branch.
        """
        front = Front(features, shape.axes, shape.unit)
        return cls(front, [Branch(**branch.model_dump()) for branch in shape.branches])

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

    def of_front(self, u: Tensor, length: Tensor) -> Gaussian:
        """The Gaussians of vectors that the front has seen.

        Args:
            u: what the front makes of them, `(n, P)`.
            length: their log lengths, `(n, 1)`.
        """
        embedded = [branch(u, length) for branch in self.branches]
        if len(embedded) == 1:
            return embedded[0]  # type: ignore[no-any-return]
        return Gaussian(*(torch.cat([z.tensors[i] for z in embedded], dim=-1) for i in range(2)))
