"""The state of a run between two steps, in one file that is replaced as a whole: a kill leaves the last one intact."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from hedged.errors import RunError
from hedged.files import write_atomically

FORMAT = "1"
FILE = "checkpoint.safetensors"


class Checkpoint(NamedTuple):
    """`step` steps done, with the config's `fingerprint`, and all tensors the next step depends on."""

    step: int
    fingerprint: str
    tensors: dict[str, Tensor]


def save_checkpoint(run: Path, checkpoint: Checkpoint) -> None:
    metadata = {"format": FORMAT, "step": str(checkpoint.step), "fingerprint": checkpoint.fingerprint}
    tensors = {name: tensor.detach().contiguous() for name, tensor in checkpoint.tensors.items()}
    write_atomically(run / FILE, lambda part: save_file(tensors, part, metadata))


def load_checkpoint(run: Path, fingerprint: str) -> Checkpoint:
    """The checkpoint of a run with this config, or a clear refusal."""
    path = run / FILE
    if not path.is_file():
        raise RunError(f"{run} holds no checkpoint to resume from: start it without --resume")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                given = metadata.get("format")
                raise RunError(f"{path} is of format {given}, this version of hedged reads format {FORMAT}")
            if metadata.get("fingerprint") != fingerprint:
                raise RunError(
                    f"{path} belongs to a run with another config: resume with the config of that run "
                    f"({run / 'config.toml'}), or train into a new folder"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            return Checkpoint(int(metadata["step"]), fingerprint, tensors)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{path} is damaged or truncated ({error}): start the run again in a new folder") from error


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's memory by parameter number, such as `3.exp_avg`."""
    state = optimiser.state_dict()["state"]
    return {f"{i}.{name}": value for i, values in state.items() for name, value in values.items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
