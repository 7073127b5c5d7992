"""`MatchModel`: when do two inputs match? The one interface that losses, search, decisions and evaluation know.

A match model turns two embeddings into the log-odds of a match, from which p, log p and log(1 − p) follow without loss
at either end. A new one implements `logit`, `settings` and `fuse`; every other method has a plain default in terms of
`logit`, and may be overridden where a faster way is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor, nn

from hedged._precision import Change, at_least_single
from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.match import _pairs
from hedged.match._numbers import cross_entropy, probability
from hedged.match._pairs import Matches

if TYPE_CHECKING:
    from hedged.match.estimators import Estimator
    from hedged.match.nearness import Nearness
    from hedged.match.portable import PortableMatch
    from hedged.match.score import Score


class MatchModel(nn.Module, ABC):
    """log-odds(m | x₁, x₂) from two embeddings p(z₁ | x₁) and p(z₂ | x₂).

    Subclasses are final and name themselves, `class MyModel(MatchModel, kind="my-model")`: the kind is what saved
    models and stores remember of it, together with its `settings`.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[MatchModel]]] = {}

    def __init_subclass__(cls, kind: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.kind = kind
        MatchModel._kinds[kind] = cls

    @abstractmethod
    def logit(self, z1: Distribution, z2: Distribution) -> Tensor:
        """log p/(1 − p) of p = p(m | x₁, x₂), `(...)`, with gradients.

        Args:
            z1: The first embeddings, of batch shape `(...)`.
            z2: The second embeddings; both batch shapes have the same rank and broadcast.
        """

    @abstractmethod
    def fuse(self, z: Distribution, owner: Tensor) -> Distribution:
        """Several inputs of one identity as one embedding, a batch of G.

        Args:
            z: M embeddings.
            owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
        """

    @abstractmethod
    def settings(self) -> dict[str, float]:
        """The plain numbers that the model can be made of again: `type(model)(**model.settings())`."""

    def describe(self) -> dict[str, Any]:
        """The kind and the settings, as plain data: what `restore` takes, and saved models and stores remember."""
        return {"kind": self.kind, **self.settings()}

    @staticmethod
    def restore(described: Mapping[str, Any]) -> MatchModel:
        """The model that `describe` describes.

        Args:
            described: The kind of the model and its settings.
        """
        kinds = MatchModel._kinds
        if not isinstance(described, Mapping):
            raise ValueRangeError(f"a match model is described by its kind and its settings, got {described!r}")
        settings = dict(described)
        kind = settings.pop("kind", None)
        if not isinstance(kind, str) or kind not in kinds:
            raise ValueRangeError(f"unknown match model {kind!r}, expected one of: {', '.join(sorted(kinds))}")
        wrong = [
            name for name, value in settings.items() if isinstance(value, bool) or not isinstance(value, int | float)
        ]
        wrong += [name for name in settings if name not in signature(kinds[kind]).parameters]
        if wrong:
            raise ValueRangeError(f"the settings of a match model {kind!r} are numbers that it has, got {wrong[0]!r}")
        return kinds[kind](**settings)

    def _apply(self, fn: Change, recurse: bool = True) -> Self:
        return super()._apply(at_least_single(fn), recurse)  # type: ignore[no-any-return, no-untyped-call]

    def portable(self) -> PortableMatch:
        """The model as plain numbers, for programs without hedged; refused where it has no such form."""
        raise ValueRangeError(
            f"a match model of kind {self.kind!r} has no portable form, so it cannot be exported: "
            "use a MatchCurve or Evidence, or define its method `portable`"
        )

    def score(self, like: Distribution) -> Score:
        """The log-odds as a formula that databases and search engines compute; refused where it has no such form.

        Args:
            like: Embeddings of the kind, dimension and components that will be compared.
        """
        raise ValueRangeError(
            f"a match model of kind {self.kind!r} has no formula that other engines compute: use a MatchCurve or "
            "Evidence, or define its method `score`"
        )

    def nearness(self, probes: Distribution) -> Nearness | None:
        """What finds candidates for probes among all items, quicker than log-odds; None: the distance of means.

        Args:
            probes: The probes, of the kind of the items.
        """
        return None

    def error_bound(self, dtype: torch.dtype | None = None) -> float:
        """How far p may be from the exact integral; 0 where the model is exact.

        Args:
            dtype: The dtype of the result, whose rounding counts too; by default that of the model.
        """
        return 0.0

    def describe_error(self) -> str:
        """How far p may be from the exact integral, in words."""
        return "none: the match model is exact"

    def unit_variance(self) -> float:
        """The variance beside which that of an embedding is small or large."""
        return 1.0

    def self_logit(self, z: Distribution) -> Tensor:
        """The log-odds of each embedding with itself, `(...)`: what ranks inputs by uncertainty without ties.

        Args:
            z: The embeddings.
        """
        return self.logit(z, z)

    def self_mismatch(self, z: Distribution) -> Tensor:
        """η(x) = 1 − p(m | x, x), `(...)`.

        Args:
            z: The embeddings.
        """
        return probability(self.self_logit(z).neg())

    def values_per_pair(self, z1: Distribution, z2: Distribution) -> int:
        """How many numbers one intermediate result of `logit` holds for each pair: it sets the size of blocks.

        Args:
            z1: The first embeddings.
            z2: The second embeddings.
        """
        return _pairs.values_per_pair(z1, z2)

    def matrix(self, z1: Distribution, z2: Distribution) -> Tensor:
        """The log-odds of all pairs of two lists, `(N, M)`, without gradients, in blocks of bounded memory.

        Args:
            z1: N embeddings.
            z2: M embeddings.
        """
        return _pairs.matrix(self.logit, z1, z2, self.values_per_pair(z1, z2))

    def probability_matrix(self, z1: Distribution, z2: Distribution) -> Tensor:
        """p(m | x_i, x_j) of all pairs of two lists, `(N, M)`, without gradients.

        Args:
            z1: N embeddings.
            z2: M embeddings.
        """
        return probability(self.matrix(z1, z2), in_place=True)

    def nearest(self, z: Distribution, gallery: Distribution, k: int, exclude_self: bool = False) -> Matches:
        """The k best matches of each embedding in a gallery, exact, the first among equals.

        Args:
            z: N probes.
            gallery: M items.
            k: How many matches each probe gets.
            exclude_self: Whether probe i and item i are one input, and never each other's match.
        """
        return _pairs.nearest(self.matrix, z, gallery, k, exclude_self)

    def chosen_logits(self, z: Distribution, items: Distribution, chosen: Tensor) -> Tensor:
        """The log-odds of each probe and the items that were chosen for it, float64 `(N, n)`.

        Args:
            z: N probes.
            items: R items.
            chosen: Places in `items`, int64 `(N, n)`; −1 stands for none, and gets −∞.
        """
        return _pairs.chosen_logits(self.logit, z, items, chosen, self.values_per_pair(z, items))

    def by_dimension(self, z1: Distribution, z2: Distribution) -> Tensor | None:
        """What each dimension adds to the log-odds, `(..., D)`; None where log-odds are no sum over dimensions.

        Args:
            z1: The first embeddings.
            z2: The second embeddings.
        """
        return None

    def pair_costs(self, z: Distribution, labels: Tensor) -> Tensor:
        """Σ −log p over the matching pairs of a batch and Σ −log(1 − p) over the others, `(2,)`, with gradients.

        Args:
            z: B embeddings.
            labels: Their classes, int64 `(B,)`. Pairs are of distinct items.
        """

        def cost(z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
            return cross_entropy(self.logit(z1, z2), match)

        return _pairs.pair_costs(cost, z, labels)

    def sampled_logits(
        self, z1: Distribution, z2: Distribution, samples: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """The log-odds of all K² pairs of samples, `(K, K, ...)`; refused where the model is not one of samples.

        Args:
            z1: The first embeddings.
            z2: The second embeddings.
            samples: K.
            generator: Where the samples are drawn from; torch's default generator if none is given.
        """
        raise ValueRangeError(f"{type(self).__name__} is exact and has no log-odds of samples: use Marginal()")

    def with_estimator(self, estimator: Estimator) -> MatchModel:
        """The same model, its integral estimated in another way; refused where there is nothing to estimate.

        Args:
            estimator: The way to integrate.
        """
        raise ValueRangeError(f"{type(self).__name__} is exact and takes no estimator, got {estimator}: leave it out")
