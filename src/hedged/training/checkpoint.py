"""The state of a run between two steps, in one file that is replaced as a whole: a kill leaves the last one intact."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from torch import Tensor

from hedged._tensors import load_tensors, save_tensors
from hedged.errors import RunError

FORMAT = "1"


class Checkpoint(NamedTuple):
    """`step` steps done with the settings of this `digest`, and all tensors the next step depends on."""

    step: int
    digest: str
    tensors: dict[str, Tensor]


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, whole or not at all.

    Args:
        path: The file.
        checkpoint: What to write.
    """
    metadata = {"format": FORMAT, "step": str(checkpoint.step), "digest": checkpoint.digest}
    save_tensors(path, checkpoint.tensors, metadata)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; one that is damaged, or of another format, is refused.

    Args:
        path: The file.
    """
    try:
        tensors, metadata = load_tensors(path)
        if metadata.get("format") != FORMAT:
            given = metadata.get("format")
            raise RunError(
                f"{path} is of format {given}, this version of hedged reads format {FORMAT}: "
                "resume with the version that wrote it, or start again in a new folder"
            )
        # "fingerprint" in runs written before this key had this name
        digest = metadata.get("digest", metadata.get("fingerprint", ""))
        return Checkpoint(int(metadata["step"]), digest, tensors)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{path} is damaged or truncated ({error}): start the run again in a new folder") from error


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's memory by parameter number, such as `3.exp_avg`."""
    state = optimiser.state_dict()["state"]
    return {f"{i}.{name}": value for i, values in state.items() for name, value in values.items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `optimiser_tensors` gave, in the memory layout of the parameters."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        parameter = parameters[int(number)]
        like = torch.empty_like(parameter) if tensor.shape == parameter.shape else torch.empty_like(tensor)
        state.setdefault(int(number), {})[key] = like.detach().copy_(tensor)
    wanted = {"step", "exp_avg", "exp_avg_sq"} if state else set()
    if state and any(state.get(i, {}).keys() != wanted for i in range(len(parameters))):
        raise KeyError("the memory of the optimiser is not whole")
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
