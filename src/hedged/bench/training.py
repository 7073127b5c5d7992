"""Whole training steps: hedged against point, and against the straightforward step; the memory of the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from hedged.bench import references
from hedged.bench.memory import loss_growth
from hedged.bench.timing import Line, side_by_side
from hedged.losses import HedgedLoss, SoftContrastiveLoss
from hedged.match import MatchCurve
from hedged.models import Architecture, Embedder
from hedged.training import build_data, parse_config
from hedged.training.build import build_parts
from hedged.training.loop import Trainer

BATCH, OF_ONE = 128, 4
ROUNDS, SHORT_ROUNDS = 7, 41  # the shorter they are, the more of them, for machines are noisy
WEIGHT = 0.05
SHALLOW, PHOTOS = (1, 28, 56), (3, 96, 96)


def lines(quick: bool) -> Iterator[Line]:
    """Times of training steps and memory of the loss, as ratios; none if it is to be quick.

    Args:
        quick: Whether to leave out whatever takes minutes.
    """
    if quick:
        return
    digits = [_many(_trainer(components).take_step, 4) for components in (0, 1, 2)]
    photos = [_many(_step(_embedder("mobilenet", PHOTOS, 20, components), PHOTOS), 2) for components in (0, 1, 2)]
    for what, ways, rounds in (("shallow-hidden, D = 2", digits, SHORT_ROUNDS), ("mobilenet, D = 20", photos, ROUNDS)):
        point, one, two = side_by_side(*ways, repeats=rounds)
        name = f"training step, {what}, batch {BATCH}, all pairs: hedged / point"
        yield Line(f"{name}, C = 1", one / point, 1.10, at_most=True)
        yield Line(f"{name}, C = 2", two / point, 1.25, at_most=True)
    network, plain = (_embedder("shallow-hidden", SHALLOW, 2, components=1) for _ in range(2))
    ours, eager = side_by_side(
        _many(_step(network, SHALLOW), 10), _many(_eager_step(plain, SHALLOW), 10), repeats=ROUNDS
    )
    yield Line("training step, shallow-hidden, D = 2: times as fast as the eager step", eager / ours, 1.5)
    yield Line("loss of all pairs, batch 1,024, D = 128: memory / 1 GB", loss_growth() / 1000, 1.0, at_most=True)


def _trainer(components: int) -> Trainer:
    """The training of the demo, batches and all, on digits that need no download."""
    head, kind = _head(components), "hedged" if components else "soft-contrastive"
    model = {"head": head, "components": max(components, 1)}
    config = parse_config({"data": {"source": "offline"}, "model": model, "loss": {"kind": kind}})
    return Trainer(config, build_parts(config, build_data(config).train))


def _head(components: int) -> str:
    return {0: "point", 1: "gaussian"}.get(components, "mixture")


def _embedder(backbone: str, shape: tuple[int, int, int], dim: int, components: int) -> Embedder:
    """A network with a point (0 components), one Gaussian or a mixture."""
    size = {"dim": dim, "components": max(components, 1), "shape": shape}
    settings = {"backbone": backbone, "head": _head(components), **size}
    network = Embedder.new(Architecture.model_validate(settings), seed=0)
    return network.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload,no-any-return]


def _batch(shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    images = torch.rand(BATCH, *shape, generator=torch.Generator().manual_seed(0))
    return images.contiguous(memory_format=torch.channels_last), torch.arange(BATCH) // OF_ONE


def _step(embedder: Embedder, shape: tuple[int, int, int]) -> Callable[[], None]:
    """What the training loop does with a batch that is there already."""
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


def _many(step: Callable[[], Any], count: int) -> Callable[[], None]:
    def steps() -> None:
        for _ in range(count):
            step()

    return steps
