"""The figure of how p(m | x₁, x₂) is computed: two images to two distributions, then by samples or in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Polygon
from matplotlib.text import Text

from hedged.data import build_ndigit, offline_digits
from hedged.data.ndigit.dataset import side_by_side
from hedged.data.ndigit.occlusion import cover
from hedged.match._closed_form.expansion import expand
from hedged.paper.exhibits import Figure
from hedged.paper.shelf import Shelf
from hedged.plots.ellipses import draw_ellipses
from hedged.plots.pictures import Pixels, draw_picture
from hedged.plots.plane import Array
from hedged.plots.style import FAINT, FULL, HEDGED, INK, MIXTURE, MUTED, POINT, SMALL, TEXT
from hedged.training import Config

Place = tuple[float, float]

HEIGHT = 3.0  # inches, as are all places and sizes here
ROWS = (2.22, 0.78)  # heights of the two inputs, and of the two ways
COLOURS = (HEDGED, MIXTURE)  # of what belongs to x₁ and to x₂
MEANS, VARIANCES = np.array([[-0.3, 0.4], [0.1, -0.3]]), np.array([[0.02, 0.03], [0.14, 0.03]])
SAMPLES, SCALE, BIAS = 8, 5.0, 3.0  # K, and a and b of the curve that is sketched
NOTHING, HALF = (0, 0, 0, 0), (4, 0, 24, 15)  # boxes to hide: top, left, bottom, right


@final
@dataclass(frozen=True)
class Architecture(Figure):
    """A drawing of the method; it needs no model."""

    name: str = "architecture"
    title: str = "How p(m | x₁, x₂) is computed: from samples as in the paper, and in closed form"

    def configs(self) -> list[Config]:
        return []

    def draw(self, shelf: Shelf) -> Canvas:
        canvas = Canvas(figsize=(FULL, HEIGHT))
        axes = canvas.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, FULL), ylim=(0, HEIGHT))
        axes.set_axis_off()
        _inputs(axes)
        _by_samples(axes, ROWS[0])
        _in_closed_form(axes, ROWS[1])
        _result(axes, sum(ROWS) / 2)
        return canvas


def _inputs(axes: Axes) -> None:
    """x₁ and x₂ through the same network, and from there both ways."""
    for i, pixels in enumerate(_images()):
        _input(axes, i, pixels)
    axes.plot([1.26, 1.26], [ROWS[0] - 0.33, ROWS[1] + 0.33], color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
    _text(axes, (1.26, sum(ROWS) / 2), "same\nweights", MUTED).set_backgroundcolor("white")
    axes.plot([2.68, 2.68], ROWS, color=INK, linewidth=0.8)
    for y in ROWS:
        axes.plot([2.47, 2.68], [y, y], color=INK, linewidth=0.8)
        _arrow(axes, (2.68, y), (2.92, y))


def _input(axes: Axes, i: int, pixels: Pixels) -> None:
    """An image, the network, and the Gaussian that it gives."""
    y, colour, k = ROWS[i], COLOURS[i], i + 1
    draw_picture(_icon(axes, (0.44, y), (0.7, 0.35)), pixels, colour)
    _text(axes, (0.44, y + 0.29), f"$x_{k}$", colour, TEXT + 1)
    _arrow(axes, (0.83, y), (1.05, y))
    corners = [(1.07, y - 0.4), (1.07, y + 0.4), (1.47, y + 0.2), (1.47, y - 0.2)]
    axes.add_patch(Polygon(corners, facecolor="#eef1f4", edgecolor=MUTED, linewidth=0.8))
    _text(axes, (1.26, y), "$f$", INK, TEXT + 2)
    _arrow(axes, (1.49, y), (1.71, y))
    _gaussian(_icon(axes, (2.08, y), (0.7, 0.7)), MEANS[i], VARIANCES[i], colour)
    _text(axes, (2.08, y + 0.47), f"$p(z_{k}|x_{k})$", colour, TEXT + 1)
    _text(axes, (2.08, y - 0.47), rf"$N(\mu_{k}, \Sigma_{k})$", colour, TEXT)


def _by_samples(axes: Axes, y: float) -> None:
    """Equation 5: the mean of the curve over all pairs of samples."""
    _lane(axes, y, POINT, "Monte Carlo (the paper): $K$ samples each, $K^2$ pairs")
    samples, icon = _samples(), _icon(axes, (3.4, y), (0.7, 0.7))
    for i, points in enumerate(samples):
        _gaussian(icon, MEANS[i], VARIANCES[i], COLOURS[i])
        icon.plot(*points.T, "o", markersize=2, color=COLOURS[i], markeredgewidth=0)
    _text(axes, (3.4, y - 0.47), r"$z_1^{(k_1)},\; z_2^{(k_2)}$", size=TEXT)
    distances = SCALE * np.linalg.norm(samples[0][:, None] - samples[1], axis=-1).ravel()
    _curve(icon := _icon(axes, (4.48, y), (0.9, 0.7)))
    icon.plot(distances, _sigmoid(distances), "o", markersize=2, color=POINT, markeredgewidth=0)
    _text(axes, (4.48, y - 0.47), r"$\sigma(-a\|z_1-z_2\|+b)$", size=TEXT)
    _text(axes, (5.6, y), r"$\frac{1}{K^2}\sum_{k_1,k_2}$", size=TEXT + 3)
    _text(axes, (5.6, y - 0.47), "mean")


def _in_closed_form(axes: Axes, y: float) -> None:
    """The curve as a sum of Gaussians, each of which has an exact expectation under the Gaussian z₁ − z₂."""
    _lane(axes, y, HEDGED, "Closed form (here): no samples, a certified error")
    _difference(_icon(axes, (3.4, y), (0.7, 0.7)))
    _text(axes, (3.4, y - 0.47), r"$\delta = z_1 - z_2$", size=TEXT)
    _terms(icon := _icon(axes, (4.48, y), (0.9, 0.7)))
    _curve(icon)
    _text(axes, (4.48, y - 0.47), r"$\sigma(b-u) \approx \Sigma_j\, w_j\, e^{-c_j u^2}$", size=TEXT)
    _text(axes, (5.6, y), r"$\sum_j w_j\, \mathrm{E}\left[e^{-c_j \|a\delta\|^2}\right]$", size=TEXT)
    _text(axes, (5.6, y - 0.47), "each term exact")


def _lane(axes: Axes, y: float, colour: str, name: str) -> None:
    """The ground of a way from both distributions to the match probability, and its arrows."""
    box = FancyBboxPatch((2.95, y - 0.63), 3.12, 1.3, boxstyle="round,pad=0,rounding_size=0.06", linewidth=0.8)
    box.set(facecolor=to_rgba(colour, 0.05), edgecolor=to_rgba(colour, 0.6))
    axes.add_patch(box)
    _text(axes, (3.03, y + 0.53), name, colour).set_horizontalalignment("left")
    _arrow(axes, (3.8, y), (4.02, y))
    _arrow(axes, (4.98, y), (5.16, y))


def _result(axes: Axes, y: float) -> None:
    for start in ROWS:
        _arrow(axes, (6.09, start), (6.5, y + 0.2 * np.sign(start - y)), bend=-0.25 * np.sign(start - y))
    _text(axes, (6.53, y), "$p(m|x_1,x_2)$", INK, TEXT + 2)


def _icon(axes: Axes, centre: Place, size: Place) -> Axes:
    """Small axes at a place of the drawing, two units high and wide unless changed."""
    (x, y), (width, height) = centre, size
    icon = axes.inset_axes((x - width / 2, y - height / 2, width, height), transform=axes.transData)
    icon.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[])
    icon.spines[:].set(color=FAINT)
    return icon


def _gaussian(icon: Axes, mean: Array, variance: Array, colour: str) -> None:
    for deviations in (1, 2):
        draw_ellipses(icon, mean, variance, colour, deviations)


def _difference(icon: Axes) -> None:
    """The Gaussian δ on the curve, which is the darker the more probable a match."""
    grid = np.linspace(-1.4, 1.4, 65)
    curve = _sigmoid(SCALE * np.hypot(grid, grid[:, None]))
    icon.imshow(curve, cmap="Greys", vmin=0, vmax=2, extent=(-1.4, 1.4, -1.4, 1.4), interpolation="bilinear")
    icon.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    _gaussian(icon, MEANS[0] - MEANS[1], VARIANCES.sum(0), HEDGED)


def _terms(icon: Axes) -> None:
    """The Gaussians that make up the curve."""
    terms, u = expand(torch.tensor(BIAS)), _distances()
    for weight, width in zip(terms.weights.tolist(), terms.widths.tolist(), strict=True):
        icon.plot(u, weight * np.exp(-width * u**2), color=HEDGED, linewidth=0.5, alpha=0.6)


def _curve(icon: Axes) -> None:
    """The probability of a match against the distance in units of the curve."""
    icon.plot(_distances(), _sigmoid(_distances()), color=INK, linewidth=1.0)
    icon.set(xlim=(0, 9), ylim=(-0.1, 1.1))


def _distances() -> Array:
    return np.linspace(0, 9, 200)


def _sigmoid(distances: Array) -> Array:
    return 1 / (1 + np.exp(distances - BIAS))


def _samples() -> Array:
    """K samples of each of the two Gaussians, `(2, K, 2)`."""
    noise = np.random.default_rng(0).normal(size=(2, SAMPLES, 2))
    samples: Array = MEANS[:, None] + np.sqrt(VARIANCES)[:, None] * noise
    return samples


def _images() -> Pixels:
    """Two images to stand for any, of the digits that come with scikit-learn, so that the drawing needs no download."""
    data = build_ndigit(offline_digits("test"), 2, [12, 42], 1, np.random.default_rng(4))
    return side_by_side(cover(data.tiles(), np.array([[NOTHING, NOTHING], [HALF, NOTHING]]))).numpy()


def _text(axes: Axes, place: Place, text: str, colour: str = INK, size: float = SMALL) -> Text:
    return axes.text(*place, text, fontsize=size, color=colour, ha="center", va="center", math_fontfamily="cm")


def _arrow(axes: Axes, start: Place, end: Place, bend: float = 0.0) -> None:
    style = f"arc3,rad={bend}"
    arrow = FancyArrowPatch(start, end, arrowstyle="-|>", connectionstyle=style, mutation_scale=7, shrinkA=0, shrinkB=0)
    arrow.set(color=INK, linewidth=0.8)
    axes.add_patch(arrow)


EXHIBIT = Architecture()
