"""The first figure: an image with two plausible readings, as a point and as a mixture of two Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from hedged.errors import DataError
from hedged.evaluation import CONDITIONS, Condition, Evaluation
from hedged.evaluation.images import images_of
from hedged.evaluation.reference import Model
from hedged.evaluation.space import Space
from hedged.match import match_probability
from hedged.metrics import Centroids
from hedged.paper.exhibits import Figure
from hedged.paper.measurements import Cell
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.plots.ellipses import draw_class_names, draw_ellipses, join_components, square_view
from hedged.plots.pictures import draw_picture
from hedged.plots.plane import Array, one_of_each
from hedged.plots.style import COLOURS, FAINT, HALO, HEDGED, INK, MIXTURE, TEXT, letters, panels, title
from hedged.training import Config

MODELS: tuple[Model, ...] = ("point", "mog-2")
HIDDEN, VISIBLE = 0.5, 0.05  # of one digit at least so much ink is hidden, of the other at most so much
SHADES = (HEDGED, MIXTURE)  # of the two readings
DEVIATIONS = 2
ZOOM = 0.6  # room around the readings and the image, in distances between them
DRAWN = 3500  # clean images: 50 of each of 70 classes


@final
@dataclass(frozen=True)
class Choice:
    """An image, and the two classes that its components are nearest to.

    Args:
        item: Which image of the test set.
        readings: The two classes.
    """

    item: int
    readings: tuple[int, int]


@final
@dataclass(frozen=True)
class Teaser(Figure):
    """The same corrupt image under both models, on the clean images of the classes."""

    name: str = "teaser"
    title: str = "An image that may be read in two ways, as a point and as a mixture of two Gaussians"

    def configs(self) -> list[Config]:
        return [recipe(2, 2, model) for model in MODELS]

    def draw(self, shelf: Shelf) -> Canvas:
        point, mixture = (shelf.evaluation(config) for config in self.configs())
        choice = chosen(mixture)
        canvas, axes = panels(1, 3, height=2.85, width_ratios=(0.4, 1, 1))
        _images(axes[0, 0], mixture, choice)
        names = ("Point embedding", f"Stochastic embedding, {DEVIATIONS}σ")
        for one, evaluation, name in zip(axes[0, 1:], (point, mixture), names, strict=True):
            _panel(one, Space(evaluation), choice)
            title(one, name)
        letters(list(axes[0, 1:]))
        return canvas

    def numbers(self, shelf: Shelf) -> list[Cell]:
        models = {model: shelf.evaluation(recipe(2, 2, model)) for model in MODELS}
        choice, labels = chosen(models["mog-2"]), models["mog-2"].labels
        setting = {"digits": 2, "dim": 2, "split": "seen", "metric": "match_probability", "item": choice.item}
        return [
            {**setting, "reads": int(labels[choice.item]), "model": model, "gallery": "clean", "probe": "corrupt",
             "reading": reading, "measured": round(match(evaluation, choice.item, reading), 5)}
            for model, evaluation in models.items()
            for reading in choice.readings
        ]  # fmt: skip


def chosen(evaluation: Evaluation) -> Choice:
    """The corrupt image to show; see `choose`.

    Args:
        evaluation: The test set, embedded.
    """
    space = Space(evaluation)
    everything = np.arange(len(evaluation.labels))
    means, variances = space.parts("corrupt", everything)
    return choose(means, variances, evaluation.labels, space.centroids, hidden_ink(evaluation))


def choose(means: Array, variances: Array, labels: NDArray[np.int64], centroids: Centroids, hidden: Array) -> Choice:
    """The image whose two components lie closest on two classes that it may be: min √E‖z − c(z)‖² / ‖c₁ − c₂‖.

    c₁ and c₂ are the class centres nearest to the components, c(z) the one of the component that z is from. One is the
    true class, both have the digit that is visible, and of the other digit most is `hidden` `(n, 2)`. If no image is
    such, all whose components lie on two classes are compared. `means` and `variances` are `(n, 2, D)`.

    Args:
        means: Of both components of each image, `(n, 2, D)`.
        variances: Of the same shape.
        labels: The class of each image, `(n,)`.
        centroids: Of the clean classes.
        hidden: The share of each digit's ink that is hidden, `(n, 2)`.
    """
    distances = np.linalg.norm(means[:, :, None] - centroids.positions, axis=-1)
    nearest = distances.argmin(-1)  # (n, 2)
    spread = np.sqrt((distances.min(-1) ** 2 + variances.sum(-1)).mean(-1))
    apart = np.linalg.norm(np.diff(centroids.positions[nearest], axis=1)[:, 0], axis=-1)
    score = spread / np.maximum(apart, 1e-9)
    readings = centroids.labels[nearest]
    two = readings[:, 0] != readings[:, 1]
    fit = _is_hidden(hidden) & _shares_visible(readings, labels, hidden) & (readings == labels[:, None]).any(-1)
    if not two.any():
        raise DataError(
            f"of {len(labels)} corrupt images none has its two components on two classes, so there is none to show "
            "that may be read in two ways: train the mixture for longer"
        )
    candidates = np.flatnonzero(two & fit if (two & fit).any() else two)
    item = candidates[score[candidates].argmin()]
    return Choice(int(item), (int(readings[item, 0]), int(readings[item, 1])))


def hidden_ink(evaluation: Evaluation) -> Array:
    """The share of the ink of each digit that is hidden in the corrupt image, `(n, N)`.

    Args:
        evaluation: The test set, embedded.
    """
    everything = np.arange(len(evaluation.labels))
    clean, corrupt = (
        images_of(evaluation, condition, everything)
        .reshape(len(everything), 28, -1, 28)
        .sum(axis=(1, 3), dtype=np.float64)
        for condition in CONDITIONS
    )
    share: Array = 1 - corrupt / np.maximum(clean, 1)
    return share


def _is_hidden(hidden: Array) -> NDArray[np.bool_]:
    """One digit mostly hidden, the other hardly."""
    answer: NDArray[np.bool_] = (hidden.max(-1) >= HIDDEN) & (hidden.min(-1) <= VISIBLE)
    return answer


def _shares_visible(readings: NDArray[np.int64], labels: NDArray[np.int64], hidden: Array) -> NDArray[np.bool_]:
    """Whether both readings have the digit that is visible."""
    place = 10 ** (hidden.shape[-1] - 1 - hidden.argmin(-1))
    digit = labels // place % 10
    answer: NDArray[np.bool_] = (readings // place[:, None] % 10 == digit[:, None]).all(-1)
    return answer


def _images(axes: Axes, evaluation: Evaluation, choice: Choice) -> None:
    """The image, and what it was before it was occluded."""
    axes.set_axis_off()
    names = sorted(_name(reading, evaluation) for reading in choice.readings)
    truth = _name(int(evaluation.labels[choice.item]), evaluation)
    captions: dict[Condition, str] = {"corrupt": f"Is it {names[0]} or {names[1]}?", "clean": f"It was {truth}."}
    for (condition, caption), height in zip(captions.items(), (0.6, 0.2), strict=True):
        frame = axes.inset_axes((0, height, 1, 0.4))
        frame.set_anchor("S")
        draw_picture(frame, images_of(evaluation, condition, np.array([choice.item]))[0], COLOURS[condition])
        axes.text(0.5, height - 0.02, caption, fontsize=TEXT, color=INK, ha="center", va="top")


def _panel(axes: Axes, space: Space, choice: Choice) -> None:
    """The embedding of the image, on those of clean images: the two readings in colour, the others faint."""
    drawn = one_of_each(space.evaluation.labels, DRAWN, space.evaluation.seed)
    clean = space.parts("clean", drawn)[0]
    axes.plot(*clean.reshape(-1, 2).T, "o", markersize=1.5, color=FAINT, markeredgewidth=0)
    for reading, colour in zip(choice.readings, SHADES, strict=True):
        members = clean[space.evaluation.labels[drawn] == reading].reshape(-1, 2)
        axes.plot(*members.T, "o", markersize=2.2, color=colour, markeredgewidth=0, alpha=0.6)
        probability = match(space.evaluation, choice.item, reading)
        _label(axes, members, f"{_name(reading, space.evaluation)}\n$p(m)$ = {probability:.2f}", colour)
    _embedding(axes, space, choice.item)
    known = np.isin(space.centroids.labels, choice.readings)
    places = space.parts("corrupt", np.array([choice.item]))[0].reshape(-1, 2)
    square_view(axes, np.concatenate([space.centroids.positions[known], places]), margin=ZOOM)
    others = [name for name, is_known in zip(space.class_names, known, strict=True) if not is_known]
    draw_class_names(axes, others, space.centroids.positions[~known])


def _embedding(axes: Axes, space: Space, item: int) -> None:
    """The corrupt image: a cross for a point, joined ellipses for a mixture."""
    means, variances = space.parts("corrupt", np.array([item]))
    if space.is_point:
        axes.plot(*means.reshape(-1, 2).T, "X", markersize=7, color=COLOURS["corrupt"], markeredgecolor="white")
    else:
        join_components(axes, means, COLOURS["corrupt"], width=0.9).set_zorder(2.5)
        draw_ellipses(axes, means, variances, COLOURS["corrupt"], DEVIATIONS, width=1.2).set_zorder(3)


def _label(axes: Axes, places: Array, words: str, colour: str) -> None:
    """Words above a cluster."""
    top = (float(np.median(places[:, 0])), float(np.quantile(places[:, 1], 0.95)))
    axes.annotate(
        words, top, (0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=TEXT, color=colour,
        fontweight="bold", linespacing=1.1, path_effects=[HALO], zorder=5,
    )  # fmt: skip


def match(evaluation: Evaluation, item: int, reading: int) -> float:
    """The mean probability that a corrupt image matches the clean images of a class.

    Args:
        evaluation: The test set, embedded.
        item: The corrupt image.
        reading: The class.
    """
    image, clean = evaluation.embeddings["corrupt"][item], evaluation.embeddings["clean"]
    members = clean[torch.from_numpy(np.flatnonzero(evaluation.labels == reading))]
    with torch.no_grad():
        return float(match_probability(image, members, evaluation.embedder.match_model).mean())


def _name(reading: int, evaluation: Evaluation) -> str:
    return evaluation.data.name(reading)


EXHIBIT = Teaser()
