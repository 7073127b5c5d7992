"""Several processes train what one would: gradients, weights, checkpoints; and one that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tiny import TINY, tiny_config, tiny_data
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel
from training.together import run_together

from hedged import Evidence, Gaussian, HedgedLoss, MatchCurve, Mixture, Point
from hedged.distributions import Distribution
from hedged.errors import HedgedError, RunError, ShapeError, TrainingError
from hedged.losses import Decoupled, Loss, MutualLikelihood, SampledPairs, SoftContrastiveLoss
from hedged.training import Run, gather, parse_config, processes, train
from hedged.training.loop import Trainer
from hedged.training.processes import Processes

Floats = NDArray[np.floating[Any]]
ITEMS, DIM = 22, 3  # which 4 processes share unevenly


def embedded(kind: str, features: Tensor) -> Distribution:
    mean, spread = features[:, : 2 * DIM], 0.05 + 0.9 * features[:, 2 * DIM :].sigmoid()
    if kind == "mixture":
        return Mixture(mean.view(-1, 2, DIM), spread.view(-1, 2, DIM))
    return Point(mean) if kind == "point" else Gaussian(mean, spread)


def loss_named(name: str) -> tuple[Loss, str]:
    curve, evidence = MatchCurve(2.0, 1.0).double(), Evidence(0.5).double()
    drawn = SampledPairs(9, torch.Generator().manual_seed(3))
    losses: dict[str, tuple[Loss, str]] = {
        "curve": (HedgedLoss(curve, beta=1e-2), "gaussian"),
        "curve of mixtures": (HedgedLoss(curve, beta=1e-2), "mixture"),
        "evidence": (HedgedLoss(evidence, beta=1e-2), "gaussian"),
        "evidence of mixtures": (HedgedLoss(evidence, beta=1e-2), "mixture"),
        "points": (SoftContrastiveLoss(curve), "point"),
        "drawn pairs": (HedgedLoss(curve, pairs=drawn), "gaussian"),
        "decoupled": (Decoupled(SoftContrastiveLoss(curve), 0.1 * MutualLikelihood()), "gaussian"),
    }
    return losses[name]


def gradients(name: str) -> dict[str, Floats]:
    """Of a batch that the processes share, of network and match model."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(ITEMS, 5, generator=generator, dtype=torch.float64)
    inputs[-1] = inputs[0]  # one input in two processes
    labels = torch.randint(5, (ITEMS,), generator=generator)
    network = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 4 * DIM)).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    loss, kind = loss_named(name)
    with Processes.joined() as processes:
        z, own = embedded(kind, network(processes.share(inputs))), processes.share(labels)
        everything, all_labels = gather(z, own)
        assert torch.equal(all_labels, labels)
        loss(everything, all_labels).backward()
        processes.average_gradients([*network.parameters(), *loss.parameters()])
    both = nn.ModuleDict({"network": network, "loss": loss})
    return {name: p.grad.numpy() for name, p in both.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    "name",
    ["curve", "curve of mixtures", "evidence", "evidence of mixtures", "points", "drawn pairs", "decoupled"],
)
def test_gradients_of_one_two_and_four_processes_are_the_same(name: str) -> None:
    wanted = gradients(name)
    assert all(np.abs(grad).max() > 0 for grad in wanted.values())
    assert any("loss" in one for one in wanted)
    # points that all move alike cost the same: where a slope is nothing but rounding, it counts beside the others
    least = 1e-6 * float(np.linalg.norm(np.concatenate([grad.ravel() for grad in wanted.values()])))
    worst = 0.0
    for count in (2, 4):
        for found in run_together(count, gradients, name):
            assert found.keys() == wanted.keys()
            apart = [
                np.linalg.norm(found[n] - wanted[n]) / max(float(np.linalg.norm(wanted[n])), least) for n in wanted
            ]
            worst = max(worst, float(max(apart)))
    print(f"{name}: {worst:.1e}")
    assert worst <= 1e-6


class Embeds(nn.Module):
    """A network whose output is a distribution, as that of an `Embedder`."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 4 * DIM)).double()

    def forward(self, inputs: Tensor) -> Distribution:
        return embedded("gaussian", self.layers(inputs))


def as_on_the_page() -> dict[str, Floats]:
    """Gradients of a loop of one's own, as docs/processes.md has it."""
    torch.manual_seed(0)
    network, inputs = Embeds(), torch.randn(ITEMS, 5, dtype=torch.float64)
    labels, curve = torch.randint(5, (ITEMS,)), MatchCurve(2.0, 1.0).double()
    loss, ddp = HedgedLoss(curve, beta=1e-2), cast(nn.Module, network)
    if distributed.is_initialized():
        ddp = DistributedDataParallel(network)
        rank, count = distributed.get_rank(), distributed.get_world_size()
        inputs, labels = (x.tensor_split(count)[rank] for x in (inputs, labels))
    z = ddp(inputs)
    loss(*gather(z, labels)).backward()
    both = nn.ModuleDict({"network": network, "loss": loss})
    return {name: p.grad.numpy() for name, p in both.named_parameters() if p.grad is not None}


def test_a_loop_of_ones_own_has_the_gradients_of_one_process() -> None:
    wanted = as_on_the_page()
    assert any("loss" in name for name in wanted)
    assert any("network" in name for name in wanted)
    for found in run_together(2, as_on_the_page):
        assert found.keys() == wanted.keys()
        for name in wanted:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-10, atol=1e-14)


TELLS: dict[str, Callable[[Processes], object]] = {
    "how many": lambda processes: processes._sizes(3),
    "stop": lambda processes: processes.any(True),
    "done": lambda processes: processes._tell_others(True),
    "waiting": lambda processes: processes._wait_for_first(),
}


@pytest.mark.parametrize("name", TELLS)
def test_with_nccl_numbers_are_told_on_the_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none here: a device that holds no numbers stands in for it."""
    monkeypatch.setattr(distributed, "get_backend", lambda: "nccl")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert processes._device() == torch.device("cuda:1")
    monkeypatch.setattr(distributed, "get_backend", lambda: "cpu:gloo,cuda:nccl")
    assert processes._device() == torch.device("cpu")
    told: list[str] = []
    for call in ("all_reduce", "broadcast"):
        monkeypatch.setattr(distributed, call, lambda x, *rest: told.append(x.device.type))
    monkeypatch.setattr(processes, "_device", lambda: torch.device("meta"))
    with suppress(RuntimeError):  # its numbers cannot be read
        TELLS[name](Processes(0, 2))
    assert told == ["meta"]


def test_gloo_and_nccl_share_the_work_where_there_are_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes._backend() == "gloo" or torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(distributed, "is_nccl_available", lambda: True)
    assert processes._backend() == "cpu:gloo,cuda:nccl"


def train_together(folder: Path, sections: dict[str, Any], resume: bool = False) -> dict[str, Floats]:
    """The state that a process ends with; each has its own idea of random weights, which it gives up."""
    config = tiny_config(**sections)
    embedder = train(config, tiny_data(config), folder, resume)
    return {name: value.numpy() for name, value in embedder.state_dict().items()}


def log(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


SHORT = {"train": {"steps": 9, "checkpoint_every": 4, "log_every": 3, "batch_size": 33}}
BY_EVIDENCE: dict[str, Any] = {"model": {"head": "posterior"}, "loss": {"kind": "evidence"}}


@pytest.mark.parametrize("sections", [SHORT, SHORT | BY_EVIDENCE], ids=["curve", "evidence"])
def test_two_processes_train_what_one_does_and_leave_one_run(tmp_path: Path, sections: dict[str, Any]) -> None:
    alone = train_together(tmp_path / "alone", sections)
    first, second = run_together(2, train_together, tmp_path / "two", sections)
    for name in alone:
        assert np.array_equal(first[name], second[name]), name
    apart, size = (
        np.sqrt(sum((x**2).sum() for x in one))
        for one in ([first[name].astype(float) - value for name, value in alone.items()], alone.values())
    )
    assert apart <= 1e-2 * size  # in single precision; Adam makes much of slopes that are next to zero
    names = {path.name for path in (tmp_path / "two").iterdir()}
    assert names == {path.name for path in (tmp_path / "alone").iterdir()}
    logs = [log(tmp_path / one) for one in ("alone", "two")]
    assert [record["step"] for record in logs[1]] == [3, 6, 9]
    for one, two in zip(*logs, strict=True):
        assert two["total"] == pytest.approx(one["total"], rel=1e-2)


def test_resumed_by_as_many_or_fewer_processes(tmp_path: Path) -> None:
    whole, _ = run_together(2, train_together, tmp_path / "whole", SHORT)
    run_together(2, stopped_after, tmp_path / "parts", 4)
    again, _ = run_together(2, train_together, tmp_path / "parts", SHORT, True)
    assert all(np.array_equal(whole[name], again[name]) for name in whole)
    run_together(2, stopped_after, tmp_path / "one", 4)
    by_one = train_together(tmp_path / "one", SHORT, resume=True)
    assert all(np.allclose(whole[name], by_one[name], rtol=2e-3, atol=2e-4) for name in whole)


def stopped_after(folder: Path, steps: int) -> None:
    """A run that one of its processes was asked to stop, in its step of this number."""
    config, taken = tiny_config(**SHORT), 0

    class Stopping(Trainer):
        def take_step(self) -> Any:
            nonlocal taken
            taken += 1
            if taken == steps and not self.processes.is_first:
                os.kill(os.getpid(), signal.SIGINT)
            return super().take_step()

    data = tiny_data(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hedged.training.loop.Trainer", Stopping)
        with pytest.raises(TrainingError, match=f"interrupted after step {steps}"):
            train(config, data, folder)


def with_normalisation(folder: Path) -> dict[str, Floats]:
    sections = {"data": TINY["data"], "model": {"backbone": "module"}, "train": TINY["train"] | SHORT["train"]}
    config = parse_config(sections)
    torch.manual_seed(os.getpid())  # each begins with weights of its own, unless they are made alike
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(28 * 56, 8), nn.BatchNorm1d(8), nn.ReLU())
    embedder = train(config, tiny_data(config), folder, backbone=backbone)
    return {name: value.numpy() for name, value in embedder.state_dict().items()}


def test_with_batch_normalisation_all_processes_hold_the_same_state(tmp_path: Path) -> None:
    first, second = run_together(2, with_normalisation, tmp_path / "two")
    assert any("running_var" in name for name in first)
    for name in first:
        assert np.array_equal(first[name], second[name]), name


def refusals(folder: Path, sections: dict[str, Any]) -> str:
    try:
        train_together(folder, sections)
    except HedgedError as error:
        return str(error)
    return "trained"


def test_what_cannot_be_is_refused_in_every_process(tmp_path: Path) -> None:
    many = {"train": {"batch_size": 2, "classes_per_batch": 1, "images_per_class": 2}}
    for told in run_together(3, refusals, tmp_path, many):
        assert "batch_size = 2 is less than the 3 processes" in told
    train_together(tmp_path / "run", SHORT)
    first, second = run_together(2, refusals, tmp_path / "run", SHORT)
    assert "already holds a run" in first
    assert second == "the first process of the training failed: its message says why"
    with pytest.raises(ShapeError, match="give one label for each embedding"):
        gather(Point(torch.zeros(3, 2)), torch.zeros(2))


def left_alone() -> None:
    """What the first process is told when the second ends in the midst of a step."""
    if distributed.get_rank():
        os._exit(1)
    with pytest.raises(RunError, match=r"another process of the training is lost .*: continue with --resume"):
        Processes(0, 2).any(False)


def test_a_process_that_is_lost_is_told_in_words() -> None:
    (told,) = run_together(2, left_alone, answers=1)
    assert told is None


@pytest.mark.heavy
def test_a_process_that_is_killed_is_started_again_and_the_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text(tiny_config(train={"steps": 400, "checkpoint_every": 20}).to_toml())
    whole = torchrun(config, tmp_path / "whole")
    assert "trained 400 steps" in whole.communicate(timeout=300)[0]
    killed = torchrun(config, tmp_path / "killed")
    run = Run(tmp_path / "killed")
    while not run.checkpoint_file.exists():
        assert killed.poll() is None
        time.sleep(0.02)
    children = Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
    writer = run.lock_file.read_text()
    (other,) = [int(child) for child in children if child not in writer]
    assert not run.model_file.exists()
    os.kill(other, signal.SIGKILL)
    told = killed.communicate(timeout=300)[0]
    assert killed.returncode == 0, told
    assert "trained 400 steps" in told  # twice, if torch aborts a process at its end: all start again, for nothing
    weights = [load_file(tmp_path / one / "model.safetensors") for one in ("whole", "killed")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert [record["step"] for record in log(run.folder)] == list(range(5, 401, 5))


def torchrun(config: Path, out: Path) -> subprocess.Popen[str]:
    """`torchrun … hedged train`, of two processes."""
    program = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "2"]
    hedged = ["--no-python", str(Path(sys.executable).parent / "hedged"), "train", str(config), "--out", str(out)]
    where = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*program, *where, *hedged], stdout=subprocess.PIPE, text=True, env=environment)
