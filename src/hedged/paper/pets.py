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

from matplotlib.figure import Figure as Canvas

from hedged._files import write_json
from hedged.evaluation.reference import Model
from hedged.evaluation.verification import FIFTH
from hedged.paper.exhibits import Figure, Only
from hedged.paper.measurements import Cell
from hedged.paper.pet_drawing import draw
from hedged.paper.pet_measurements import BinsOfUncertainty, PetMeasures
from hedged.paper.recipe import head_of
from hedged.paper.shelf import PETS, Need, Shelf
from hedged.training import Config, parse_config

POINT, HEDGED = "point", "mog-1"
SEEDS = 3
PAPER_ACCURACY = 0.777  # of the paper's point embedding, on its own photos
PAPER_CORRELATION = 0.995  # of the paper's bins; no Kendall's τ of 20 bins has this value


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
        """`configs/pets.toml` for a model and a seed."""
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
        return draw([self._bins(found) for found in self._measured(shelf, HEDGED)])

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
        """What else was measured: when uncertain photos are refused, and whatever the threshold."""
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


EXHIBIT = Pets()
