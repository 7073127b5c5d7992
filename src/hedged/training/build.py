"""From a config to the things it names: data, network, loss."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from hedged.data import Batches, Dataset, Splits
from hedged.losses import (
    AllPairs,
    ContrastiveLoss,
    Decoupled,
    ExpectedLog,
    HedgedLoss,
    Likelihood,
    Loss,
    Marginal,
    MutualLikelihood,
    PairSelection,
    SampledPairs,
    SoftContrastiveLoss,
)
from hedged.match import Evidence, MatchCurve, MonteCarlo
from hedged.models import Architecture, Embedder
from hedged.training.config import Config, LossConfig, RunConfig


class Parts(NamedTuple):
    """What a run trains, on what, and what it minimises; `generator` is the source of all the loss's samples."""

    embedder: Embedder
    batches: Batches
    loss: Loss
    generator: torch.Generator


def build_data(config: RunConfig) -> Splits[Dataset]:
    """The data that a config names, in parts: to train on, to validate on if any is kept for it, and to test.

    Args:
        config: whose section [data] says which.
    """
    return config.data.open()


def build_parts(config: Config, train: Dataset, backbone: nn.Module | None = None) -> Parts:
    """An untrained embedder, its batches and its loss, all drawn from the seed of [train].

    Args:
        config: All settings.
        train: What to train on.
        backbone: The network that model.backbone = "module" stands for.
    """
    loss, training = config.loss, config.train
    generator = torch.Generator()
    embedder = Embedder.new(_first_architecture(config), training.seed, loss.scale, loss.bias, backbone)
    # Plain convolutions are up to a fifth faster in this layout. Fused ones take any, to the same weights.
    embedder = embedder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Parts(embedder, build_batches(config, train), build_loss(loss, embedder.curve, generator), generator)


def build_batches(config: Config, train: Dataset) -> Batches:
    """The batches of a run, each depending on the seed and the step alone.

    Args:
        config: Whose sections [data] and [train] say how they are drawn.
        train: What to draw them from.
    """
    return config.data.batches(train, config.train.plan)


def build_loss(config: LossConfig, curve: MatchCurve, generator: torch.Generator) -> Loss:
    """The loss that a config names.

    Args:
        config: the section [loss].
        curve: the match curve that it trains.
        generator: where all its samples are drawn from.
    """
    pairs = _pairs(config, generator)
    if config.kind == "contrastive":
        return ContrastiveLoss(config.margin, config.positive_weight, pairs)
    if config.trains_points:
        return SoftContrastiveLoss(curve, config.positive_weight, pairs)
    hedged: Loss = HedgedLoss(
        curve,
        config.beta,
        config.positive_weight,
        likelihood=_likelihood(config, generator),
        pairs=pairs,
        kl_samples=config.samples if config.kl == "monte-carlo" else None,
        generator=generator,
    )
    if config.mutual_weight:
        hedged += config.mutual_weight * MutualLikelihood(positive_weight=config.positive_weight, pairs=pairs)
    if config.means == "hedged":
        return hedged
    of_the_means = MatchCurve(config.scale, config.bias)
    return Decoupled(SoftContrastiveLoss(of_the_means, config.positive_weight, pairs), hedged)


def build_evidence_loss(config: LossConfig, evidence: Evidence, generator: torch.Generator) -> Loss:
    """The loss of the second stage of a run by evidence: equation 8 with another match probability.

    Args:
        config: the section [loss].
        evidence: the match model that it trains.
        generator: where all its samples are drawn from.
    """
    return HedgedLoss(evidence, config.beta, config.positive_weight, pairs=_pairs(config, generator))


def _first_architecture(config: Config) -> Architecture:
    """The network that training begins with: by evidence, one with another head (`hedged.training.warm_start`)."""
    architecture = config.architecture
    if config.evidence_from is None:
        return architecture
    head = "point" if config.loss.trains_points else "gaussian"
    return architecture.model_copy(update={"section": architecture.section.model_copy(update={"head": head})})


def _pairs(config: LossConfig, generator: torch.Generator) -> PairSelection:
    return AllPairs() if config.pairs == "all" else SampledPairs(config.pairs, generator)


def _likelihood(config: LossConfig, generator: torch.Generator) -> Likelihood:
    if config.likelihood == "expected-log":
        return ExpectedLog(config.samples, generator)
    return Marginal(None if config.estimator == "closed-form" else MonteCarlo(config.samples, generator))
