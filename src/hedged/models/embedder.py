"""An `Embedder` is a backbone, a head and a match curve: images in, distributions and match probabilities out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self, final

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from hedged._files import make_folder, write_atomically, write_json
from hedged.data.inputs import image_batches, vector_batches
from hedged.distributions import Distribution, concatenate
from hedged.errors import DataError, RunError
from hedged.match import MatchCurve, MatchModel, match_probability, self_mismatch
from hedged.models.config import Architecture
from hedged.models.heads import Head
from hedged.models.views import Views

FORMAT = 1
NUMBERS = 2**20  # that inputs have which are embedded at a time: the work on more of them leaves the cache
DESCRIPTION, WEIGHTS = "model.json", "model.safetensors"
SHIPS = "hedged:"  # before the name of a model that comes with the package
MODELS = Path(__file__).parent / "shipped"


@final
class Embedder(nn.Module):
    """x ↦ p(z|x), with the curve that turns two of them into a match probability.

    >>> import numpy as np
    >>> e = Embedder.new(Architecture(dim=2, shape=(1, 28, 56)), seed=0)
    >>> z = e.embed(np.zeros((3, 28, 56), np.uint8))
    >>> z, e.uncertainty(z).shape
    (Gaussian(batch=(3,), dim=2, dtype=torch.float32), torch.Size([3]))
    """

    def __init__(
        self, backbone: nn.Module, head: Head, curve: MatchCurve, architecture: Architecture, views: Views | None = None
    ) -> None:
        super().__init__()
        self.backbone, self.head, self.curve = backbone, head, curve
        self.architecture = architecture
        self.views = architecture.network.views if views is None else views
        self.notes: dict[str, Any] = {}  # where the weights come from; saved and loaded with them

    @classmethod
    def new(
        cls,
        architecture: Architecture,
        seed: int,
        scale: float = 10.0,
        bias: float = 3.0,
        backbone: nn.Module | None = None,
    ) -> Self:
        """An untrained embedder, its weights drawn from `seed`; `backbone` is the network of an architecture "module".

        >>> own = nn.Sequential(nn.Flatten(), nn.Linear(48, 16))
        >>> Embedder.new(Architecture(backbone="module", shape=(3, 4, 4)), seed=0, backbone=own).head.features
        16
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            built, head = architecture.build(backbone)
        return cls(built, head, MatchCurve(scale, bias), architecture)

    @property
    def match_model(self) -> MatchModel:
        """When two of its embeddings match."""
        return self.curve

    def forward(self, images: Tensor) -> Distribution:
        """Distributions of a batch, with gradients, each of one view: the input as it is given.

        `embed` looks at all of `views`, which is for test time; the two are the same for `OneView`.

        Args:
            images: `(B, C, H, W)` in [0, 1], or vectors `(B, F)`.
        """
        z: Distribution = self.head(self.backbone(images))
        return z

    @torch.no_grad()
    def embed(self, images: Any, batch_size: int | None = None) -> Distribution:
        """The distributions of any number of images: arrays, tensors, PIL images, paths or lists of them.

        A model of vectors takes arrays or tensors `(n, F)`, paths of feature files, or lists of them. Unless told, as
        many are taken at a time as a processor is quick with. A model whose `views` are `Mirrored` sees each image and
        its mirror image, and gives what is known from both.
        """
        self.eval()
        batches = self._batches(images, self.batch_size if batch_size is None else batch_size)
        embedded = [self._embed_batch(batch.to(self.curve.bias.device)) for batch in batches]
        if not embedded:
            raise DataError("there is no image to embed: pass at least one")
        return concatenate(embedded)

    def _embed_batch(self, images: Tensor) -> Distribution:
        embedded: list[Distribution] = [self(laid_out(view)) for view in self.views.of(images)]
        return self.views.join(embedded)

    @property
    def batch_size(self) -> int:
        """How many inputs are embedded at a time, unless told."""
        return max(NUMBERS // math.prod(self.architecture.shape), 1)

    def _batches(self, inputs: Any, batch_size: int) -> Iterator[Tensor]:
        shape = self.architecture.shape
        if len(shape) == 1:
            return vector_batches(inputs, shape[0], batch_size)
        return image_batches(inputs, (shape[0], shape[1], shape[2]), batch_size, self.architecture.resize)

    @torch.no_grad()
    def match(self, a: Any, b: Any) -> Tensor:
        """p(m | a, b), `(N,)`, of two lists of images or of embeddings, item by item."""
        return match_probability(self._embedded(a), self._embedded(b), self.curve)

    @torch.no_grad()
    def uncertainty(self, x: Any) -> Tensor:
        """η(x) = 1 − p(m | x, x), `(N,)`, of images or embeddings."""
        return self_mismatch(self._embedded(x), self.curve)

    def _embedded(self, x: Any) -> Distribution:
        return x if isinstance(x, Distribution) else self.embed(x)

    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell this model from any other: a hash of its architecture and all its weights.

        What was made with a model, embeddings or a calibration, says so by it. Notes do not count.
        """
        content = hashlib.sha256(json.dumps(self.architecture.model_dump(mode="json"), sort_keys=True).encode())
        for name, tensor in sorted(self.state_dict().items()):
            content.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return content.hexdigest()[:16]

    def save(self, folder: str | Path) -> None:
        """Write the weights and a readable description of them; each file appears whole or not at all."""
        folder = Path(folder)
        make_folder(folder)
        weights = save({name: tensor.contiguous() for name, tensor in self.state_dict().items()})
        write_atomically(folder / WEIGHTS, lambda part: part.write_bytes(weights))
        content = {"format": FORMAT, "architecture": self.architecture.model_dump(mode="json"), "notes": self.notes}
        write_json(folder / DESCRIPTION, content)

    @classmethod
    def load(cls, folder: str | Path, backbone: nn.Module | None = None) -> Self:
        """The embedder saved in a folder, or one that ships, by name: `Embedder.load("hedged:ndigit-2d")`.

        `backbone` is a network of your own, if the embedder was trained with one; it gets the weights that were saved.
        """
        folder = _shipped(str(folder)) if str(folder).startswith(SHIPS) else Path(folder)
        architecture, notes = _read_description(folder)
        # The weights follow: there is no need to fetch those that training started from.
        blank = architecture.model_copy(update={"network": architecture.network.without_download()})
        embedder = cls.new(blank, seed=0, backbone=backbone)
        embedder.architecture, embedder.notes = architecture, notes
        _load_weights(embedder, folder / WEIGHTS)
        return embedder.eval()


def laid_out(inputs: Tensor) -> Tensor:
    """Images in the layout in which convolutions are quickest; vectors as they are."""
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.ndim == 4 else inputs


def shipped_models() -> list[str]:
    """The names under which trained models ship."""
    return [SHIPS + path.parent.name for path in sorted(MODELS.glob(f"*/{DESCRIPTION}"))]


def _shipped(name: str) -> Path:
    if name not in shipped_models():
        there = ", ".join(shipped_models()) or "none at all"
        raise RunError(f"no model ships as {name}; there are: {there}. Choose one, or give a folder")
    return MODELS / name.removeprefix(SHIPS)


def _read_description(folder: Path) -> tuple[Architecture, dict[str, Any]]:
    path = folder / DESCRIPTION
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{folder} holds no model ({DESCRIPTION} is missing): train one with `hedged train`") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): train the model again or restore the file") from error
    version = content.get("format") if isinstance(content, dict) else None
    if version != FORMAT:
        raise RunError(
            f"{path} is of format {version!r}, this version of hedged reads format {FORMAT}: "
            "use the version that wrote it, or train the model again"
        )
    try:
        return Architecture.model_validate(content.get("architecture")), dict(content.get("notes") or {})
    except (ValidationError, TypeError, ValueError) as error:
        raise RunError(f"{path} describes a model this version of hedged does not have: {error}") from error


def _load_weights(embedder: Embedder, path: Path) -> None:
    try:
        weights = load_file(path)
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing: the folder holds a description without weights") from error
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{path} is damaged or truncated ({error}): train the model again or restore the file"
        ) from error
    expected = embedder.state_dict()
    wrong = [n for n in expected.keys() | weights.keys() if n not in expected or n not in weights]
    wrong += [n for n in expected.keys() & weights.keys() if expected[n].shape != weights[n].shape]
    if wrong:
        raise RunError(
            f"{path} holds the weights of another model than {path.parent / DESCRIPTION} describes "
            f"(they differ in {', '.join(sorted(wrong)[:3])}): restore the files of one run, or train the model again"
        )
    embedder.load_state_dict(weights)
