"""Whole training steps: hedged against point, and against the straightforward step; the memory of the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from hedged.architecture import Architecture
from hedged.benchmarks import references
from hedged.benchmarks.memory import loss_growth
from hedged.benchmarks.timing import Line, side_by_side
from hedged.curve import MatchCurve
from hedged.embedder import Embedder
from hedged.losses import HedgedLoss, SoftContrastiveLoss

BATCH, OF_ONE = 128, 4
ROUNDS = 7
WEIGHT = 0.05
SHALLOW, PHOTOS = (1, 28, 56), (3, 96, 96)


def lines(quick: bool) -> Iterator[Line]:
    if quick:
        return
    for backbone, shape, dim, steps in (("shallow-hidden", SHALLOW, 2, 20), ("mobilenet", PHOTOS, 20, 2)):
        ways = [_many(_step(_embedder(backbone, shape, dim, components), shape), steps) for components in (0, 1, 2)]
        point, one, two = side_by_side(*ways, repeats=ROUNDS)
        what = f"training step, {backbone}, D = {dim}, batch {BATCH}, all pairs: hedged / point"
        yield Line(f"{what}, C = 1", one / point, 1.10, at_most=True)
        yield Line(f"{what}, C = 2", two / point, 1.25, at_most=True)
    network, plain = (_embedder("shallow-hidden", SHALLOW, 2, components=1) for _ in range(2))
    ours, eager = side_by_side(
        _many(_step(network, SHALLOW), 10), _many(_eager_step(plain, SHALLOW), 10), repeats=ROUNDS
    )
    yield Line("training step, shallow-hidden, D = 2: times as fast as the eager step", eager / ours, 1.5)
    yield Line("loss of all pairs, batch 1,024, D = 128: memory / 1 GB", loss_growth() / 1000, 1.0, at_most=True)


def _embedder(backbone: str, shape: tuple[int, int, int], dim: int, components: int) -> Embedder:
    """A network with a point (0 components), one Gaussian or a mixture."""
    head = {0: "point", 1: "gaussian"}.get(components, "mixture")
    settings = {"backbone": backbone, "head": head, "dim": dim, "components": max(components, 1), "shape": shape}
    network = Embedder.new(Architecture.model_validate(settings), seed=0)
    return network.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload,no-any-return]


def _batch(shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    images = torch.rand(BATCH, *shape, generator=torch.Generator().manual_seed(0))
    return images.contiguous(memory_format=torch.channels_last), torch.arange(BATCH) // OF_ONE


def _step(embedder: Embedder, shape: tuple[int, int, int]) -> Callable[[], None]:
    """What the training loop does with a batch."""
    images, labels = _batch(shape)
    optimiser = torch.optim.Adam(embedder.parameters(), fused=True)
    curve: MatchCurve = embedder.curve
    is_point = embedder.architecture.head == "point"
    loss = SoftContrastiveLoss(curve, WEIGHT) if is_point else HedgedLoss(curve, positive_weight=WEIGHT)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss(embedder(images), labels).backward()
        optimiser.step()

    return step


def _eager_step(embedder: Embedder, shape: tuple[int, int, int]) -> Callable[[], None]:
    """The same network, batch and loss as one would write them in plain torch, in its usual layout."""
    images, labels = _batch(shape)
    images, embedder = images.contiguous(), embedder.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    optimiser = torch.optim.Adam(embedder.parameters())
    layers = nn.Sequential(embedder.backbone.convolutions, embedder.backbone.hidden)  # type: ignore[arg-type]

    def step() -> None:
        optimiser.zero_grad()
        z = embedder.head(layers(images))
        references.eager_costs(z, labels, embedder.curve, WEIGHT).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def _many(step: Callable[[], None], count: int) -> Callable[[], None]:
    def steps() -> None:
        for _ in range(count):
            step()

    return steps
