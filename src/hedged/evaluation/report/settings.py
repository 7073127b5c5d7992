"""What was measured, on what and with what: the facts that the evaluation itself knows."""

from __future__ import annotations

from collections.abc import Mapping

from hedged.data import PaperTask
from hedged.data.ndigit.mnist import STAND_IN
from hedged.distributions import Distribution, Mixture, Point
from hedged.evaluation.evaluation import Evaluation
from hedged.evaluation.report.markup import escape


def describe_model(z: Distribution) -> str:
    """The kind of embedding in words."""
    space = f"in {z.dim} dimension" + ("s" if z.dim > 1 else "")
    if isinstance(z, Point):
        return f"a point {space}"
    if isinstance(z, Mixture):
        return f"a mixture of {z.parts()[0].shape[-2]} Gaussians {space}"
    return f"a Gaussian {space}"


def facts(evaluation: Evaluation) -> dict[str, str]:
    """Settings that can be read off the evaluation; those the caller gives come after them."""
    data, curve = evaluation.data, evaluation.embedder.curve
    return {
        "Data": data.source,
        "Test set": f"{len(data):,} images of {data.contents}",
        "Embedding": describe_model(evaluation.embeddings["clean"]),
        "Backbone": evaluation.embedder.architecture.backbone,
        "Match curve": f"p(r) = σ(b − a r) with a = {curve.scale.item():.3f}, b = {curve.bias.item():.3f}",
        "Error of p": f"certified to be at most {curve.error_bound():.5f}",
        "Test seed": str(evaluation.seed),
    }


def settings_list(settings: Mapping[str, str]) -> str:
    rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in settings.items())
    return '<dl class="settings">\n' + "\n".join(rows) + "\n</dl>"


def warning(task: PaperTask | None) -> str:
    """Loud words if the digits are not MNIST's, for then no number may be held against the paper's."""
    if task is None or task.comparable:
        return ""
    source = task.stand_in
    what = "These digits are not MNIST." if source != STAND_IN else "This is the offline stand-in, not MNIST."
    return (
        f'<p class="warning" role="alert"><strong>{escape(what)}</strong> Source: {escape(source)}. '
        "The paper’s numbers were measured on MNIST: they stand here for orientation, not for comparison.</p>"
    )
