"""What was measured, on what and with what: the facts that the evaluation itself knows."""

from __future__ import annotations

from hedged.data import PaperTask
from hedged.data.ndigit.mnist import STAND_IN
from hedged.distributions import Distribution, Mixture, Point
from hedged.evaluation.evaluation import Evaluation


def describe_model(z: Distribution) -> str:
    """The kind of embedding in words.

    Args:
        z: Any embedding of the model.
    """
    space = f"in {z.dim} dimension" + ("s" if z.dim > 1 else "")
    if isinstance(z, Point):
        return f"a point {space}"
    if isinstance(z, Mixture):
        return f"a mixture of {z.parts()[0].shape[-2]} Gaussians {space}"
    return f"a Gaussian {space}"


def facts(evaluation: Evaluation) -> dict[str, str]:
    """Settings that can be read off the evaluation, by name.

    Args:
        evaluation: The test set, embedded.
    """
    data, model = evaluation.data, evaluation.embedder.match_model
    parameters = ", ".join(f"{name} = {value:.3f}" for name, value in model.settings().items())
    return {
        "Data": data.source,
        "Test set": f"{len(data):,} images of {data.contents}",
        "Embedding": describe_model(evaluation.embeddings["clean"]),
        "Backbone": evaluation.embedder.architecture.backbone,
        "Match model": f"{model.kind} with {parameters}" if parameters else model.kind,
        "Error of p": f"certified to be at most {model.error_bound():.5f}",
        "Test seed": str(evaluation.seed),
    }


def warning(task: PaperTask | None) -> str | None:
    """Loud words if digits are not MNIST's, for then no number may be compared with the paper's.

    Args:
        task: What the paper measures, if it has such data.
    """
    if task is None or task.comparable:
        return None
    return "This is the offline stand-in, not MNIST." if task.stand_in == STAND_IN else "These digits are not MNIST."
