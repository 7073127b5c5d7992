"""The embedding space: clouds of test images on the centres of the classes, clean beside corrupt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.distributions import Distribution
from hedged.evaluation.evaluation import CONDITIONS, Condition, Evaluation
from hedged.metrics import Centroids, class_centroids
from hedged.plots.plane import Array, Plane, one_of_each

DRAWN = 100  # clouds: as many as can be told apart
MARKED = (0.5, 0.8, 0.95)  # quantiles of η, once corrupt, of the images to look at closely
NAMES = "ABC"  # the letters of these images
MARGIN = 0.05


@final
@dataclass(frozen=True, eq=False)
class Space:
    """A test set and the plane that it is drawn on: what the panels share.

    Args:
        evaluation: The test set, embedded.
    """

    evaluation: Evaluation

    @property
    def embedding(self) -> Distribution:
        return self.evaluation.embeddings["clean"]

    @property
    def components(self) -> int:
        return self.embedding.n_components

    @property
    def is_point(self) -> bool:
        return self.embedding.is_point

    @cached_property
    def drawn(self) -> NDArray[np.intp]:
        """The images whose clouds are drawn, the same in both panels."""
        return one_of_each(self.evaluation.labels, DRAWN, self.evaluation.seed)

    @cached_property
    def marked(self) -> NDArray[np.intp]:
        """Images to look at closely: of middling, of high and of very high η once corrupt."""
        by_eta = self.drawn[np.argsort(self.evaluation.uncertainty["corrupt"][self.drawn], kind="stable")]
        places = np.unique([int(q * (len(by_eta) - 1)) for q in MARKED])
        chosen: NDArray[np.intp] = by_eta[places]
        return chosen

    @cached_property
    def centroids(self) -> Centroids:
        """Where the clean images of each class are on average."""
        return class_centroids(self.embedding.mean.double().numpy(), self.evaluation.labels)

    @cached_property
    def class_names(self) -> list[str]:
        """The names of the classes, in the order of `centroids`."""
        return [self.evaluation.data.name(int(label)) for label in self.centroids.labels]

    @cached_property
    def plane(self) -> Plane:
        """The view: of one dimension there is only the line."""
        means = self.embedding.parts()[0].double().numpy()
        return Plane.through(means.reshape(-1, means.shape[-1]))

    def parts(self, condition: Condition, items: NDArray[np.intp]) -> tuple[Array, Array]:
        """Means and variances of the components of images, `(n, C, D)` each.

        Args:
            condition: Clean or corrupt.
            items: Which images, `(n,)`.
        """
        means, variances = self.evaluation.embeddings[condition][torch.from_numpy(items)].parts()
        return means.double().numpy(), variances.double().numpy()

    def covariances(self, condition: Condition, items: NDArray[np.intp]) -> Array:
        """Covariances of the components of images, `(n, C, D, D)`.

        Args:
            condition: Clean or corrupt.
            items: Which images, `(n,)`.
        """
        return self.evaluation.embeddings[condition][torch.from_numpy(items)].covariances().double().numpy()

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper corner of the view: all centres, and all drawn clouds to one standard deviation."""
        corners = [self.plane.project(self.centroids.positions)]
        for condition in CONDITIONS:
            means, _ = self.parts(condition, self.drawn)
            places, reach = self.plane.project(means), self.plane.deviations(self.covariances(condition, self.drawn))
            corners += [places - reach, places + reach]
        points = np.concatenate([corner.reshape(-1, corner.shape[-1]) for corner in corners])
        low, high = points.min(0), points.max(0)
        margin = MARGIN * (high - low).max() + 1e-6  # the same on both axes: the view keeps its proportions
        return low - margin, high + margin
