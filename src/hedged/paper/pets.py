"""The pet experiment (section "HIB embeddings for pet identification"): photos of dogs, one Gaussian against a point.

The paper's own photos are not public. Ours are of DogFaceNet; `hedged paper run pets --data DIR` says where they are.
"""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from hedged._files import write_json
from hedged._odds import logit
from hedged.evaluation.reference import Model
from hedged.evaluation.verification import FIFTH
from hedged.paper.exhibits import Figure, Only
from hedged.paper.measurements import Cell
from hedged.paper.pet_measurements import COLUMNS, FAINTEST, STRONGEST, BinsOfUncertainty, PetMeasures, Spread
from hedged.paper.recipe import head_of
from hedged.paper.shelf import PETS, Need, Shelf
from hedged.plots import style
from hedged.plots.curves import draw_bins, draw_histogram
from hedged.plots.style import INK, SMALL, grid, labels, letters, panels, title
from hedged.training import Config, parse_config

POINT, HEDGED = "point", "mog-1"
SEEDS = 3
PAPER_ACCURACY = 0.777  # of the paper's point embedding, on its own photos
PAPER_CORRELATION = 0.995  # of the paper's bins; no Kendall's τ of 20 bins has this value
TICKS = (1, 5, 10, 15, 20)  # bins that are numbered
ACCURACIES = 5  # that are numbered, at most
SAME, DIFFERENT = style.HEDGED, style.VERMILION
ODDS = {1e-6: "10⁻⁶", 1e-4: "10⁻⁴", 0.01: "0.01", 0.5: "0.5", 0.98: "0.98"}  # probabilities that are numbered


@final
@dataclass(frozen=True)
class Pets(Figure):
    """Balanced accuracy of all pairs of held-out photos, in 20 bins of uncertainty, and match scores at both ends."""

    name: str = "pets"
    title: str = "Photos of pets: accuracy against uncertainty, and match scores where it is lowest and highest"
    needs_photos: bool = True
    photos: Path | None = None

    def of_photos(self, folder: Path) -> Pets:
        return replace(self, photos=folder)

    def configs(self) -> list[Config]:
        return [self.config(model, seed) for seed in range(SEEDS) for model in (HEDGED, POINT)]

    def config(self, model: Model, seed: int) -> Config:
        """`configs/pets.toml` for a model and a seed.

        Args:
            model: "point" or "mog-1".
            seed: Of the training.
        """
        content = {name: dict(section) for name, section in _file().items()}
        content["model"] |= head_of(model)
        if model == POINT:
            hedged_only = ("beta", "means", "mutual_weight")
            content["loss"] = {key: value for key, value in content["loss"].items() if key not in hedged_only}
            content["loss"]["kind"] = "soft-contrastive"
        content["train"]["seed"] = seed
        if self.photos is not None:
            content["data"]["path"] = str(self.photos)
        return parse_config(content, name="the recipe of pets")

    def needs(self, only: Only) -> list[Need]:
        return [replace(need, tests=(PETS,)) for need in super().needs(only)]

    def draw(self, shelf: Shelf) -> Canvas:
        return _draw([self._bins(found) for found in self._measured(shelf, HEDGED)])

    def numbers(self, shelf: Shelf) -> list[Cell]:
        point, hedged = self._measured(shelf, POINT), self._measured(shelf, HEDGED)
        bins, cell = [self._bins(found) for found in hedged], partial(self._cell, shelf)
        return [
            cell(POINT, "balanced_accuracy", [found.accuracy for found in point], PAPER_ACCURACY),
            cell(HEDGED, "balanced_accuracy", [found.accuracy for found in hedged]),
            cell(HEDGED, "bin_correlation", [b.kendall for b in bins], correlation="kendall"),
            cell(HEDGED, "bin_correlation", [b.pearson for b in bins], PAPER_CORRELATION, correlation="pearson"),
        ]

    def variants(self, shelf: Shelf) -> list[Cell]:
        """What else was measured: when uncertain photos are refused, and whatever the threshold.

        Args:
            shelf: Where trained models and their measurements are.
        """
        point, hedged = self._measured(shelf, POINT), self._measured(shelf, HEDGED)
        kept, cell = [self._bins(found).kept_accuracy for found in hedged], partial(self._cell, shelf)
        return [
            cell(HEDGED, "balanced_accuracy", kept, rejected=FIFTH),
            cell(POINT, "roc_auc", [found.roc_auc for found in point]),
            cell(HEDGED, "roc_auc", [found.roc_auc for found in hedged]),
        ]

    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        aside = folder / f"{self.name}-variants.json"
        write_json(aside, self.variants(shelf))
        return [*super().write(shelf, folder, only), aside]

    def _measured(self, shelf: Shelf, model: Model) -> list[PetMeasures]:
        return [PetMeasures.of(shelf.measured(self.config(model, seed), PETS)) for seed in range(SEEDS)]

    @staticmethod
    def _bins(found: PetMeasures) -> BinsOfUncertainty:
        assert found.bins is not None  # a Gaussian has an uncertainty
        return found.bins

    def _cell(
        self,
        shelf: Shelf,
        model: Model,
        metric: str,
        values: Sequence[float],
        paper: float | None = None,
        **more: str | float,
    ) -> Cell:
        config, first = self.config(model, 0), self._measured(shelf, model)[0]
        beta = {} if model == POINT else {"beta": config.loss.beta}
        return {
            "dim": config.model.dim,
            "model": model,
            "metric": metric,
            **more,
            "split": "test",
            "pets": first.pets,
            "photos": first.photos,
            **beta,
            "backbone": config.model.backbone,
            "batch_size": config.train.batch_size,
            "steps": config.train.steps,
            "paper": paper,
            "measured": round(statistics.fmean(values), 5),
            "std": round(statistics.stdev(values), 5),
            "seeds": len(values),
        }


@cache
def _file() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(resources.files("hedged.training").joinpath("configs/pets.toml").read_text(encoding="utf-8"))


def _draw(found: Sequence[BinsOfUncertainty]) -> Canvas:
    """(a) all seeds and their mean; (b) and (c) the first seed."""
    figure, axes = panels(1, 3, height=2.5, width_ratios=(1.25, 1, 1))
    _accuracies(axes[0, 0], found)
    top = max(_density(counts).max() for end in _ends(found[0]) for counts in (end.same, end.different))
    for one, spread, words in zip(axes[0, 1:], _ends(found[0]), ("lowest", "highest"), strict=True):
        _scores(one, spread)
        one.set_ylim(0, 1.08 * top)
        title(one, f"{words} uncertainty")
    labels(axes[0, 1], x="match probability", y="density, in log-odds")
    labels(axes[0, 2], x="match probability")
    axes[0, 2].tick_params(labelleft=False)
    axes[0, 1].legend(loc="upper left", fontsize=SMALL, frameon=False, handlelength=1.2, labelcolor=INK)
    letters(list(axes.flat))
    return figure


def _ends(found: BinsOfUncertainty) -> tuple[Spread, Spread]:
    return found.lowest, found.highest


def _accuracies(axes: Axes, found: Sequence[BinsOfUncertainty]) -> None:
    curves = np.array([each.accuracy for each in found])
    bins = np.arange(1, curves.shape[1] + 1)
    axes.plot(bins, curves.T, color=style.POINT, alpha=0.45, linewidth=0.7)
    draw_bins(axes, curves.mean(0), style.HEDGED, "o")
    kendall, pearson = (np.mean([getattr(each, name) for each in found]) for name in ("kendall", "pearson"))
    title(axes, f"$\\tau = {kendall:.2f}$, Pearson’s $r = {pearson:.2f}$")
    axes.set_xlim(0, len(bins) + 1)
    axes.set_xticks(TICKS)
    axes.yaxis.set_major_locator(MaxNLocator(ACCURACIES, steps=(1, 2, 5, 10)))
    grid(axes)
    labels(axes, x="bin of uncertainty", y="balanced accuracy")


def _scores(axes: Axes, spread: Spread) -> None:
    edges = np.linspace(FAINTEST, STRONGEST, COLUMNS + 1)
    for counts, colour, words in ((spread.same, SAME, "same dog"), (spread.different, DIFFERENT, "different dogs")):
        draw_histogram(axes, _density(counts), edges, colour, words)
    axes.set_xlim(FAINTEST, STRONGEST)
    axes.set_xticks(logit(list(ODDS)), list(ODDS.values()))


def _density(counts: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    width = (STRONGEST - FAINTEST) / COLUMNS
    shares: np.ndarray[tuple[int], np.dtype[np.float64]] = np.array(counts, dtype=np.float64) / sum(counts) / width
    return shares


EXHIBIT = Pets()
