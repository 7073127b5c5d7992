"""What was measured, on what and with what: the facts that the evaluation itself knows."""

from __future__ import annotations

from hedged.distributions import Distribution
from hedged.evaluation.evaluation import Evaluation


def describe_model(z: Distribution) -> str:
    """The kind of embedding in words.

    Args:
        z: Any embedding of the model.
    """
    space = f"in {z.dim} dimension" + ("s" if z.dim > 1 else "")
    if z.is_point:
        return f"a point {space}"
    if z.n_components > 1:
        return f"a mixture of {z.n_components} Gaussians {space}"
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
        "Test set": f"{len(data):,} {data.inputs} of {data.contents}",
        "Embedding": describe_model(evaluation.embeddings["clean"]),
        "Backbone": evaluation.embedder.architecture.backbone,
        "Match model": f"{model.kind} with {parameters}" if parameters else model.kind,
        "Error of p": model.describe_error(),
        "Test seed": str(evaluation.seed),
    }
