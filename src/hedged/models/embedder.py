"""An `Embedder` is a network, a head and a match model: inputs in, distributions and match probabilities out."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from hedged._files import make_folder
from hedged._precision import Change, rounds, single_by_default
from hedged.data.inputs import image_batches, vector_batches
from hedged.distributions import Distribution, concatenate
from hedged.errors import DataError, RunError, ShapeError, ValueRangeError
from hedged.match import MatchCurve, Matches, MatchModel, best_matches, match_matrix, match_probability, self_mismatch
from hedged.models.backbones import Backbone, Wrapped
from hedged.models.config import Architecture
from hedged.models.heads import Head
from hedged.models.saved import (
    DESCRIPTION,
    FIRST_KIND,
    FIRST_NAME,
    MATCH_MODEL,
    WEIGHTS,
    Description,
    check_shapes,
    model_folder,
    read_description,
    read_weights,
    with_first_names,
    write_model,
)
from hedged.models.views import OneView, Views
from hedged.novelty import Novelty
from hedged.novelty.novelty import FILE as NOVELTY

UNKNOWN_NOVELTY = "unknown, fit it with `hedged novelty RUN`"
LOGGER = logging.getLogger("hedged")
VALUES_PER_BATCH = 2**20  # numbers of the inputs that are embedded at a time: the work on more of them leaves the cache

OneImage: TypeAlias = str | Path | bytes | Image.Image | NDArray[Any] | Tensor
ImageLike: TypeAlias = OneImage | Iterable[OneImage]
"""What `embed` takes: an image or many, as a path, the bytes of a file, a PIL image, an array, a tensor, or an iterable
of these. A model of vectors takes arrays and tensors `(n, F)`, and paths of feature files."""


@final
class Embedder(nn.Module):
    """x ↦ p(z|x), with the match model that turns two of them into a match probability.

    Args:
        network: inputs `(B, ...)` to features `(B, F)`: a backbone of ours, or any module of your own.
        head: features to distributions.
        match_model: when two distributions match.
        views: what `embed` looks at, such as `Mirrored()`; for test time, `forward` and training see one view. None:
            the input alone.
        shape: of one input, (channels, height, width) or (length,). None: what the network has as its attribute
            `shape`; if it has none, inputs are given as tensors, which the network gets as they are.
        resize: the shorter edge in pixels that image files are brought to before their middle is taken; None: they have
            to be of the right size.

    >>> import numpy as np
    >>> from hedged import GaussianHead
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(28 * 56, 512), nn.ReLU())
    >>> e = Embedder(network, GaussianHead(512, 2), MatchCurve(), shape=(1, 28, 56))
    >>> z = e.embed(np.zeros((3, 28, 56), np.uint8))
    >>> z, e.uncertainty(z).shape, e.match_matrix(z, z[:2]).shape
    (Gaussian(batch=(3,), dim=2, dtype=torch.float32), torch.Size([3]), torch.Size([3, 2]))
    """

    def __init__(
        self,
        network: nn.Module,
        head: Head,
        match_model: MatchModel,
        views: Views | None = None,
        *,
        shape: tuple[int, ...] | None = None,
        resize: int | None = None,
    ) -> None:
        super().__init__()
        self.backbone, self.head, self.match_model = _as_backbone(network, head, shape), head, match_model
        self.views = OneView() if views is None else views
        self.shape, self.resize = self.backbone.shape, resize
        self.novelty_model: Novelty | None = None
        """How unlike its training inputs an input is; saved and loaded with the model. None: nothing is known of it."""
        self.notes: dict[str, Any] = {}
        """Where the weights come from, in words and numbers; saved and loaded with them."""
        self._architecture: Architecture | None = None
        self._rounded_from: dict[str, str] = {}  # by the hash of the rounded weights, the fingerprint before
        self.register_load_state_dict_pre_hook(_rename_weights)  # type: ignore[no-untyped-call]

    @classmethod
    @single_by_default()
    def new(
        cls,
        architecture: Architecture,
        seed: int,
        scale: float = 10.0,
        bias: float = 3.0,
        backbone: nn.Module | None = None,
    ) -> Self:
        """An untrained embedder with a match curve, from a description.

        Args:
            architecture: backbone, head and the shape of inputs in words.
            seed: of the weights.
            scale: a of the match curve.
            bias: b of the match curve.
            backbone: the network of an architecture "module".

        >>> own = nn.Sequential(nn.Flatten(), nn.Linear(48, 16))
        >>> Embedder.new(Architecture(backbone="module", shape=(3, 4, 4)), seed=0, backbone=own).head.features
        16
        """
        return cls._build(architecture, seed, MatchCurve(scale, bias), architecture.section.views, backbone)

    @classmethod
    def _build(
        cls,
        architecture: Architecture,
        seed: int,
        match_model: MatchModel,
        views: Views,
        network: nn.Module | None,
    ) -> Self:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            backbone, head = architecture.build(network)
        embedder = cls(backbone, head, match_model, views, resize=architecture.resize)
        embedder._architecture = architecture
        return embedder

    def with_head(self, head: Head, match_model: MatchModel, architecture: Architecture) -> Self:
        """The same network, whose features another head makes distributions of, and another match model compares.

        Args:
            head: of as many features.
            match_model: when two distributions match.
            architecture: what both are, in words.
        """
        other = type(self)(self.backbone, head, match_model, self.views, resize=self.resize)
        other._architecture = architecture
        return other

    @property
    def architecture(self) -> Architecture:
        """Backbone, head and the shape of inputs in words; a network of your own is `backbone = "module"`."""
        if self._architecture is not None:
            return self._architecture
        settings = {**self.backbone.settings(), **self.head.settings()}
        return Architecture(shape=self.shape, resize=self.resize, **settings)

    @property
    def curve(self) -> MatchCurve:
        """The match model, if it is the match curve; any other is refused."""
        if not isinstance(self.match_model, MatchCurve):
            raise ValueRangeError(f"the match model of this embedder is {self.match_model}: use match_model, not curve")
        return self.match_model

    def forward(self, inputs: Tensor) -> Distribution:
        """Distributions of a batch, with gradients, each of one view: the input as it is given.

        `embed` looks at all `views`, which are for test time; the two agree for `OneView`.

        Args:
            inputs: images `(B, C, H, W)` in [0, 1], or vectors `(B, F)`.
        """
        z: Distribution = self.head(self.backbone(inputs))
        return z

    @torch.no_grad()
    def embed(self, images: ImageLike, batch_size: int | None = None) -> Distribution:
        """The distributions of any number of inputs, of all their `views`, in evaluation mode and without gradients.

        Args:
            images: an image or many, as arrays, tensors, PIL images, paths or an iterable of them; for a model of
                vectors, arrays or tensors `(n, F)`, paths of feature files, or lists of them; for a network whose
                `shape` is not known, one array or tensor `(n, ...)`.
            batch_size: how many are taken at a time; None: as many as a processor is quick with.
        """
        return concatenate([self._embed_batch(batch, None) for batch in self._ready(images, batch_size)])

    @torch.no_grad()
    def embed_with_novelty(
        self, images: ImageLike, batch_size: int | None = None
    ) -> tuple[Distribution, Tensor | None]:
        """What `embed` and `novelty` return, in one pass of the network; None if novelty is not known.

        Args:
            images: As for `embed`.
            batch_size: As for `embed`.
        """
        novelty: list[Tensor] = []
        embedded = [self._embed_batch(batch, novelty) for batch in self._ready(images, batch_size)]
        return concatenate(embedded), torch.cat(novelty) if self.novelty_model else None

    def _ready(self, images: ImageLike, batch_size: int | None) -> Iterator[Tensor]:
        """Batches as the network takes them, which is in evaluation mode; at least one."""
        self.eval()
        like = next(self.parameters(), torch.zeros(0))  # the first weights, those of the network if it has any
        found = False
        for batch in self._batches(images, batch_size):
            found = True
            yield _like(like, batch)
        if not found:
            raise DataError("there is no image to embed: pass at least one")

    def _embed_batch(self, inputs: Tensor, novelty: list[Tensor] | None) -> Distribution:
        """The embeddings of a batch; the novelty of its first view is appended, if it is asked for and known."""
        embedded: list[Distribution] = []
        for view in self.views.of(inputs):
            features = self.backbone(channels_last(view))
            if novelty is not None and self.novelty_model and not embedded:
                novelty.append(self.novelty_model(features))
            embedded.append(self.head(features))
        return self.views.join(embedded)

    @property
    def batch_size(self) -> int:
        """How many inputs are embedded at a time, unless another number is asked for."""
        return max(VALUES_PER_BATCH // math.prod(self.shape), 1)

    def _batches(self, inputs: ImageLike, batch_size: int | None) -> Iterator[Tensor]:
        shape = self.shape
        if len(shape) == 1:
            return vector_batches(inputs, shape[0], self.batch_size if batch_size is None else batch_size)
        if len(shape) == 3:
            size = self.batch_size if batch_size is None else batch_size
            return image_batches(inputs, (shape[0], shape[1], shape[2]), size, self.resize)
        return _tensor_batches(inputs, batch_size)

    @torch.no_grad()
    def match(self, a: ImageLike | Distribution, b: ImageLike | Distribution) -> Tensor:
        """p(m | a_i, b_i), `(N,)`: the probability that two inputs match, pair by pair.

        Args:
            a: N inputs, or their embeddings.
            b: as many.
        """
        return match_probability(self._embedded(a), self._embedded(b), self.match_model)

    @torch.no_grad()
    def match_matrix(self, a: ImageLike | Distribution, b: ImageLike | Distribution) -> Tensor:
        """p(m | a_i, b_j), `(N, M)`: the probability that two inputs match, for all pairs.

        Args:
            a: N inputs, or their embeddings.
            b: M inputs, or their embeddings.
        """
        return match_matrix(self._embedded(a), self._embedded(b), self.match_model)

    @torch.no_grad()
    def nearest(
        self, x: ImageLike | Distribution, gallery: ImageLike | Distribution, k: int = 1, exclude_self: bool = False
    ) -> Matches:
        """The k best matches of each input in a gallery, and their log-odds, best first; exact.

        Args:
            x: N inputs, or their embeddings.
            gallery: M inputs, or their embeddings.
            k: how many matches each input gets.
            exclude_self: whether input i and item i of the gallery are the same, and never each other's match.
        """
        return best_matches(self._embedded(x), self._embedded(gallery), self.match_model, k, exclude_self=exclude_self)

    @torch.no_grad()
    def uncertainty(self, x: ImageLike | Distribution) -> Tensor:
        """η(x) = 1 − p(m | x, x), `(N,)`.

        Args:
            x: N inputs, or their embeddings.
        """
        return self_mismatch(self._embedded(x), self.match_model)

    @torch.no_grad()
    def novelty(self, x: ImageLike, batch_size: int | None = None) -> Tensor:
        """How unlike the training inputs each is, `(N,)` in (0, 1): the share of held-out ones that are less novel.

        η asks whether an input could be several things, novelty whether the model has seen the like of it. It is told
        from features, so inputs are needed, not their embeddings.

        Args:
            x: N inputs.
            batch_size: how many are taken at a time; None: as many as a processor is quick with.
        """
        if self.novelty_model is None:
            raise RunError(f"novelty: {UNKNOWN_NOVELTY}")
        features = (self.backbone(channels_last(batch)) for batch in self._ready(x, batch_size))
        return torch.cat([self.novelty_model(some) for some in features])

    def _embedded(self, x: ImageLike | Distribution) -> Distribution:
        return x if isinstance(x, Distribution) else self.embed(x)

    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell this model from any other: a hash of its description and all its weights.

        What was made with a model, embeddings or a calibration, refers to it by them. Notes do not count, nor does the
        precision that weights are held in: a model in half precision is still itself, until its weights are changed.
        One that is saved with rounded weights is another model to those who load it: they see no others.
        """
        own = self._hash()
        return self._rounded_from.get(own, own)

    def _apply(self, fn: Change, recurse: bool = True) -> Self:
        if not rounds(fn, self.parameters()):
            return super()._apply(fn, recurse)  # type: ignore[no-any-return, no-untyped-call]
        known = self.fingerprint()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._rounded_from = {self._hash(): known}
        return self

    def _hash(self) -> str:
        """The fingerprint of a model with the weights as they are now."""
        content = hashlib.sha256(_sorted_json(self.architecture.model_dump(mode="json")))
        if self.views != self.architecture.section.views:
            content.update(_sorted_json(self.views.describe()))
        described = self.match_model.describe()
        if described["kind"] != FIRST_KIND["kind"]:  # all numbers of a curve are weights, which count already
            content.update(_sorted_json(described))
        for name, tensor in sorted(with_first_names(self.state_dict()).items()):
            values = tensor.detach().cpu().float() if tensor.is_floating_point() else tensor.detach().cpu()
            content.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
            content.update(values.contiguous().numpy().tobytes())
        return content.hexdigest()[:16]

    def save(self, folder: str | Path) -> None:
        """Write the weights and a readable description of the model; each file appears whole or not at all.

        Args:
            folder: where to; it is made if it is not there.
        """
        folder = Path(folder)
        make_folder(folder)
        description = Description(self.architecture, self.match_model, self.views, self.notes)
        if self.novelty_model is None:
            (folder / NOVELTY).unlink(missing_ok=True)
        else:
            self.novelty_model.save(folder, self._hash())  # of the weights as they will be loaded
        write_model(folder, description, self.state_dict())

    @classmethod
    @single_by_default()
    def load(cls, folder: str | Path, backbone: nn.Module | None = None) -> Self:
        """A saved embedder, in evaluation mode.

        Args:
            folder: where it was saved, or the name of a model that ships, such as "hedged:ndigit-2d".
            backbone: the network of your own that it was made with, if it was; it gets the weights that were saved.
        """
        folder = model_folder(folder)
        saved = read_description(folder)
        # The weights follow: there is no need to fetch those that training started from.
        blank = saved.architecture.model_copy(update={"section": saved.architecture.section.without_download()})
        if backbone is None:
            check_shapes(folder / WEIGHTS, cls._sketch(blank, saved, folder).state_dict())
        embedder = cls._build(blank, 0, saved.match_model, saved.views, backbone)
        embedder._architecture, embedder.notes = saved.architecture, saved.notes
        check_shapes(folder / WEIGHTS, embedder.state_dict())
        embedder.load_state_dict(read_weights(folder / WEIGHTS))
        if (folder / NOVELTY).exists():
            embedder.novelty_model = _checked_novelty(Novelty.load(folder, embedder.fingerprint()), embedder, folder)
        return embedder.eval()

    @classmethod
    def _sketch(cls, architecture: Architecture, saved: Description, folder: Path) -> Self:
        """A model of which only the shapes are there, which takes no memory, however large it claims to be."""
        try:
            with torch.device("meta"):
                return cls._build(architecture, 0, saved.match_model, saved.views, None)
        except RuntimeError as error:  # sizes that cannot be counted
            raise RunError(
                f"{folder / DESCRIPTION} describes a network that cannot be built ({error}): restore the file"
            ) from error


def _checked_novelty(found: Novelty | None, embedder: Embedder, folder: Path) -> Novelty | None:
    """The novelty that was found beside a model, if it is of this model; else a warning."""
    if found is not None and found.gaussians.width == embedder.head.features:
        return found
    LOGGER.warning("%s is of another model and is not used: fit it with `hedged novelty %s`", folder / NOVELTY, folder)
    return None


def channels_last(inputs: Tensor) -> Tensor:
    """Images in the memory layout in which convolutions are quickest; all else as it is.

    Args:
        inputs: a batch.
    """
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.ndim == 4 else inputs


def _as_backbone(network: nn.Module, head: Head, shape: tuple[int, ...] | None) -> Backbone:
    """A network as a backbone of as many features as the head takes."""
    if not isinstance(network, Backbone):
        said = getattr(network, "shape", ()) if shape is None else shape
        known = isinstance(said, tuple) and all(isinstance(side, int) for side in said)
        return Wrapped(network, tuple(said) if known else (), features=head.features)
    if shape not in (None, network.shape):
        raise ShapeError(f"this network takes inputs of shape {network.shape}, got shape = {shape}: leave it out")
    if network.features != head.features:
        raise ShapeError(
            f"this network returns {network.features} features, and its head takes {head.features}: make them equal"
        )
    return network


def _like(weights: Tensor, inputs: Tensor) -> Tensor:
    """Inputs where the weights are, and, if they are floats, of their precision."""
    return inputs.to(weights) if inputs.is_floating_point() else inputs.to(weights.device)


def _tensor_batches(inputs: ImageLike, batch_size: int | None) -> Iterator[Tensor]:
    """Batches of an array or tensor, for a network of which nothing else is known; floats become float32."""
    if not isinstance(inputs, np.ndarray | Tensor) or inputs.ndim < 1:
        raise DataError(
            f"this network does not say which inputs it takes, so they are one array or tensor (n, ...), got "
            f"{type(inputs).__name__}: for images, give their shape, Embedder(..., shape=(3, 224, 224))"
        )
    rows = torch.as_tensor(inputs)
    size = max(VALUES_PER_BATCH // max(math.prod(rows.shape[1:]), 1), 1) if batch_size is None else batch_size
    if size < 1:
        raise ValueRangeError(f"a batch has at least one input, got batch_size={batch_size}")
    yield from torch.split(rows.float() if rows.is_floating_point() else rows, size) if len(rows) else ()


def _rename_weights(module: nn.Module, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Let checkpoints be loaded that were written when the match model was called `curve`."""
    for name in [name for name in state if name.startswith(prefix + FIRST_NAME)]:
        state[prefix + MATCH_MODEL + name.removeprefix(prefix + FIRST_NAME)] = state.pop(name)


def _sorted_json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
