"""From a config to the things it names: data, network, loss."""

from __future__ import annotations

from typing import NamedTuple

import torch

from hedged.curve import MatchCurve
from hedged.data import NDigit, NDigitSplits, SplitSizes, TwoStream, load_mnist, ndigit_splits, offline_digits
from hedged.embedder import Embedder
from hedged.losses import (
    AllPairs,
    ContrastiveLoss,
    ExpectedLog,
    HedgedLoss,
    Likelihood,
    Marginal,
    PairLoss,
    PairSelection,
    SampledPairs,
    SoftContrastiveLoss,
)
from hedged.match import ClosedForm, MonteCarlo
from hedged.training.config import Config, LossConfig


class Parts(NamedTuple):
    """What a run trains, on what, and what it minimises; `generator` is the source of all the loss's samples."""

    embedder: Embedder
    batches: TwoStream
    loss: PairLoss
    generator: torch.Generator


def build_data(config: Config) -> NDigitSplits:
    """The splits of N-digit MNIST, of the real digits or of their offline stand-in."""
    data = config.data
    load = load_mnist if data.source == "mnist" else offline_digits
    sizes = SplitSizes(data.train_images, data.test_images, data.test_images, data.per_class)
    return ndigit_splits(load("train"), load("test"), data.digits, data.split, data.seed, data.holdout, sizes)


def build_parts(config: Config, train: NDigit) -> Parts:
    """An untrained embedder, its batches and its loss, all drawn from `train.seed`."""
    loss, training = config.loss, config.train
    generator = torch.Generator()
    embedder = Embedder.new(config.architecture, training.seed, loss.scale, loss.bias)
    # Plain convolutions are up to a fifth faster in this layout. Fused ones take any, to the same weights.
    embedder = embedder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    batches = TwoStream(
        train,
        training.batch_size,
        training.classes_per_batch,
        training.images_per_class,
        config.data.occlusion,
        training.seed,
    )
    return Parts(embedder, batches, build_loss(loss, embedder.curve, generator), generator)


def build_loss(config: LossConfig, curve: MatchCurve, generator: torch.Generator) -> PairLoss:
    pairs: PairSelection = AllPairs() if config.pairs == "all" else SampledPairs(config.pairs, generator)
    if config.kind == "contrastive":
        return ContrastiveLoss(config.margin, config.positive_weight, pairs)
    if config.kind == "soft-contrastive":
        return SoftContrastiveLoss(curve, config.positive_weight, pairs)
    kl_samples = config.samples if config.kl == "monte-carlo" else None
    likelihood = _likelihood(config, generator)
    return HedgedLoss(curve, config.beta, config.positive_weight, likelihood, pairs, kl_samples, generator)


def _likelihood(config: LossConfig, generator: torch.Generator) -> Likelihood:
    if config.likelihood == "expected-log":
        return ExpectedLog(config.samples, generator)
    return Marginal(ClosedForm() if config.estimator == "closed-form" else MonteCarlo(config.samples, generator))
