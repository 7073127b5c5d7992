"""A plain training loop with a mixture and the schedule of the positive weight: its components meet."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from hedged import HedgedLoss, MatchCurve, MixtureHead
from hedged.data import TwoStream, build_ndigit, offline_digits
from hedged.losses import PositiveWeight

STEPS = 250


def components_apart(schedule: PositiveWeight) -> float:
    """How far apart the two components of a clean image are, in units of the curve: the median over images."""
    torch.manual_seed(0)
    data = build_ndigit(offline_digits("train"), 2, range(100), 30, np.random.default_rng(0))
    stream = TwoStream(data, batch_size=60, classes_per_batch=10, images_per_class=6)
    network = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(14 * 28, 128), nn.ReLU())
    head, curve = MixtureHead(features=128, dim=2, components=2), MatchCurve()
    loss = HedgedLoss(curve)
    optimiser = torch.optim.Adam([*network.parameters(), *head.parameters(), *loss.parameters()], lr=5e-3)
    for step in range(STEPS):
        batch = stream.batch(step)
        loss.positive_weight = schedule(step / STEPS)
        optimiser.zero_grad()
        loss(head(network(batch.images)), batch.labels).backward()
        optimiser.step()
    with torch.no_grad():
        means, _ = head(network(data.clean(torch.arange(500)).unsqueeze(1) / 255)).parts()
        return float(((means[:, 0] - means[:, 1]).norm(dim=-1) * curve.scale).median())


def test_with_the_schedule_a_mixture_does_not_learn_a_code_of_two_places() -> None:
    """With a small constant weight each class lies in two places, 20 and more units of the curve apart."""
    assert components_apart(PositiveWeight(start=0.5, end=0.05)) < 5
    assert components_apart(PositiveWeight(start=0.05, end=0.05)) > 10
