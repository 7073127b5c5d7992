"""From a config to the things it names: data, network, loss."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from hedged.data import (
    Augmentation,
    Batches,
    ClassSampler,
    Dataset,
    Features,
    FeatureSplits,
    FeatureStream,
    NDigit,
    NDigitSplits,
    Photos,
    PhotoSplits,
    PhotoStream,
    SplitRule,
    Splits,
    SplitSizes,
    TwoStream,
    load_mnist,
    ndigit_splits,
    offline_digits,
    open_features,
    open_photos,
)
from hedged.errors import ConfigError
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
from hedged.match import ClosedForm, MatchCurve, MonteCarlo
from hedged.models import Embedder
from hedged.models.backbones import Standardize, StandardizeHidden
from hedged.training.config import Config, LossConfig
from hedged.training.data_config import FeaturesConfig, ImagesConfig


class Parts(NamedTuple):
    """What a run trains, on what, and what it minimises; `generator` is the source of all the loss's samples."""

    embedder: Embedder
    batches: Batches
    loss: PairLoss
    generator: torch.Generator


def build_data(config: Config) -> Splits:
    """The parts of what the config names: N-digit MNIST, its offline stand-in, images of your own, or vectors."""
    if isinstance(config.data, FeaturesConfig):
        return build_features(config.data)
    return build_photos(config.data) if isinstance(config.data, ImagesConfig) else build_ndigit(config)


def build_ndigit(config: Config) -> NDigitSplits:
    """The splits of N-digit MNIST, of the real digits or of their offline stand-in."""
    data = config.ndigit
    load = load_mnist if data.source == "mnist" else offline_digits
    sizes = SplitSizes(data.train_images, data.test_images, data.test_images, data.per_class)
    return ndigit_splits(load("train"), load("test"), data.digits, data.split, data.seed, data.holdout, sizes)


def build_photos(data: ImagesConfig) -> PhotoSplits:
    """The parts of a folder or table of images, decoded if they were not before."""
    path = Path(data.path).expanduser()
    return open_photos(path, data.identity, data.size, data.cached_size, _rule(data), data.broken)


def build_features(data: FeaturesConfig) -> FeatureSplits:
    """The parts of a file of vectors."""
    path, labels, corrupt = (
        Path(name).expanduser() if name else None for name in (data.path, data.labels, data.corrupt_path)
    )
    parts = open_features(path or Path(), labels, corrupt, _rule(data))
    if (size := parts.train.vectors.shape[1]) != data.size:
        raise ConfigError(f"data.size = {data.size}, but the vectors in {path} have {size} numbers: set it to {size}")
    return parts


def _rule(data: ImagesConfig | FeaturesConfig) -> SplitRule:
    return SplitRule(data.split, data.test_share, data.test_pattern, data.validation_share, data.seed)


def build_parts(config: Config, train: Dataset, backbone: nn.Module | None = None) -> Parts:
    """An untrained embedder, its batches and its loss, all drawn from `train.seed`; `backbone` if it is of your own."""
    loss, training = config.loss, config.train
    generator = torch.Generator()
    embedder = Embedder.new(config.architecture, training.seed, loss.scale, loss.bias, backbone)
    if isinstance(train, Features) and isinstance(embedder.backbone, Standardize | StandardizeHidden):
        embedder.backbone.fit(train.vectors)
    # Plain convolutions are up to a fifth faster in this layout. Fused ones take any, to the same weights.
    embedder = embedder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Parts(embedder, build_batches(config, train), build_loss(loss, embedder.curve, generator), generator)


def build_batches(config: Config, train: Dataset) -> Batches:
    """The batches of a run, each depending on the seed and the step alone."""
    data, training = config.data, config.train
    sizes = (training.batch_size, training.classes_per_batch, training.images_per_class)
    if isinstance(train, NDigit):
        return TwoStream(train, *sizes, config.ndigit.occlusion, training.seed)
    if isinstance(train, Photos) and isinstance(data, ImagesConfig):
        varied = Augmentation(data.flip, data.colour, data.blur, data.erase, data.low_resolution)
        return PhotoStream(train, ClassSampler(train.labels, *sizes, training.seed, fewest=2), varied)
    if isinstance(train, Features) and isinstance(data, FeaturesConfig):
        sampler = ClassSampler(train.labels, *sizes, training.seed, fewest=2)
        return FeatureStream(train, sampler, data.corruption, data.noise)
    raise ConfigError(f'data.source = "{data.source}" does not go with {type(train).__name__}: see build_data')


def build_loss(config: LossConfig, curve: MatchCurve, generator: torch.Generator) -> PairLoss:
    pairs: PairSelection = AllPairs() if config.pairs == "all" else SampledPairs(config.pairs, generator)
    if config.kind == "contrastive":
        return ContrastiveLoss(config.margin, config.positive_weight, pairs)
    if config.kind == "soft-contrastive":
        return SoftContrastiveLoss(curve, config.positive_weight, pairs)
    kl_samples = config.samples if config.kl == "monte-carlo" else None
    likelihood = _likelihood(config, generator)
    weights, as_points = (config.beta, config.positive_weight), config.means == "points"
    return HedgedLoss(curve, *weights, likelihood, pairs, kl_samples, generator, as_points, config.mutual_weight)


def _likelihood(config: LossConfig, generator: torch.Generator) -> Likelihood:
    if config.likelihood == "expected-log":
        return ExpectedLog(config.samples, generator)
    return Marginal(ClosedForm() if config.estimator == "closed-form" else MonteCarlo(config.samples, generator))
