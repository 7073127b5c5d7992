"""Training: it learns, logs, warns, stops where it must, and a run that was interrupted ends like one that was not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import tiny_config, tiny_data

from hedged import Embedder
from hedged._tensors import load_tensors, save_tensors
from hedged.data import TwoStream
from hedged.errors import RunError, TrainingError
from hedged.training import Run, train
from hedged.training.build import build_parts
from hedged.training.journal import diagnose
from hedged.training.loop import Trainer

SCRIPT = Path(__file__).parents[1] / "tiny.py"


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model.safetensors")


def assert_same_weights(one: Path, other: Path) -> None:
    for name, value in weights(one).items():
        assert torch.equal(value, weights(other)[name]), name


def log(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def test_a_run_leaves_a_model_a_log_and_its_config(tmp_path: Path) -> None:
    config = tiny_config()
    embedder = train(config, tiny_data(config), tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {
        "checkpoint.safetensors",
        "config.toml",
        "log.jsonl",
        "model.json",
        "model.safetensors",
        "novelty.safetensors",
    }
    loaded = Embedder.load(tmp_path).state_dict()
    assert all(torch.equal(value, loaded[name]) for name, value in embedder.state_dict().items())
    records = log(tmp_path)
    assert [r["step"] for r in records] == list(range(5, 61, 5))
    keys = {"total", "positive", "negative", "kl", "scale", "bias", "kl_per_dim", "variance", "variance_spread"}
    assert keys | {"uncertainty"} <= records[-1].keys()


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        ({}, {}),
        ({"head": "mixture", "components": 2}, {"estimator": "monte-carlo", "kl": "monte-carlo"}),
        ({}, {"likelihood": "expected-log", "pairs": 30}),
        ({"head": "point"}, {"kind": "soft-contrastive"}),
        ({"head": "point"}, {"kind": "contrastive"}),
        ({"head": "posterior"}, {"kind": "evidence", "warm_share": 0.05}),
    ],
)
def test_every_kind_of_model_learns(model: dict[str, object], loss: dict[str, object]) -> None:
    config = tiny_config(model={"channels": [2, 4], "hidden": 16, **model}, loss=loss, train={"learning_rate": 1e-2})
    trainer = Trainer(config, build_parts(config, tiny_data(config)))
    losses = [trainer.take_step()[0].total.item() for _ in range(60)]
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])


def test_killed_ten_times_at_random_moments_and_resumed_it_ends_with_the_same_weights(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, tmp_path, "150", "10"], check=True, capture_output=True)
    runs = [run for run in tmp_path.iterdir() if run.name != "whole"]
    assert runs
    for run in runs:
        assert_same_weights(tmp_path / "whole", run)
        assert log(tmp_path / "whole") == log(run)


def test_killed_while_it_writes_it_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    """What a kill between two system calls leaves behind: a partial file that is not the checkpoint."""
    config = tiny_config()
    train(config, tiny_data(config), tmp_path / "whole")
    half = Trainer(config, build_parts(config, tiny_data(config)))
    run = tmp_path / "killed"
    run.mkdir()
    _run_until(half, run, step=20)
    (run / ".checkpoint.safetensors.0123.part").write_bytes(b"half a file")
    with (run / "log.jsonl").open("a") as file:
        file.write('{"step": 25, "tot')
    train(config, tiny_data(config), run, resume=True)
    assert_same_weights(tmp_path / "whole", run)
    assert log(tmp_path / "whole") == log(run)


def _run_until(trainer: Trainer, run: Path, step: int) -> None:
    """Run and fail at `step`, as a crash would."""

    def crash(number: int) -> object:
        raise KeyboardInterrupt if number == step else AssertionError

    whole = trainer.parts.batches.batch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TwoStream, "batch", lambda self, n: whole(n) if n < step else crash(n))
        with pytest.raises(KeyboardInterrupt):
            trainer.run(Run(run))


def test_ctrl_c_finishes_the_step_saves_it_and_tells_how_to_go_on(tmp_path: Path) -> None:
    config = tiny_config()
    train(config, tiny_data(config), tmp_path / "whole")
    data = tiny_data(config)
    whole = TwoStream.batch

    def interrupting(self: TwoStream, step: int) -> object:
        if step == 10:
            signal.raise_signal(signal.SIGINT)
        return whole(self, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TwoStream, "batch", interrupting)
        with pytest.raises(TrainingError, match=r"interrupted after step 11 of 60.*--resume"):
            train(config, data, tmp_path / "run")
    train(config, data, tmp_path / "run", resume=True)
    assert_same_weights(tmp_path / "whole", tmp_path / "run")


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    config = tiny_config(train={"steps": 10})
    data = tiny_data(config)
    train(config, data, tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(RunError, match="already holds a run: continue it with --resume"):
        train(config, data, tmp_path)
    with pytest.raises(RunError, match="another config"):
        train(tiny_config(train={"steps": 11}), data, tmp_path, resume=True)
    assert before == {p.name: p.read_bytes() for p in tmp_path.iterdir()}


def test_checkpoints_that_cannot_be_trusted_are_refused(tmp_path: Path) -> None:
    config = tiny_config(train={"steps": 10})
    data = tiny_data(config)
    with pytest.raises(RunError, match="no checkpoint to resume from"):
        train(config, data, tmp_path, resume=True)
    train(config, data, tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(RunError, match="damaged or truncated"):
        train(config, data, tmp_path, resume=True)
    path.write_bytes(good)
    save_file(load_file(path), path, {"format": "99"})
    with pytest.raises(RunError, match="format 99"):
        train(config, data, tmp_path, resume=True)


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_step(tmp_path: Path) -> None:
    config = tiny_config(train={"learning_rate": 1e30, "warmup": 0, "steps": 30})
    with pytest.raises(
        TrainingError, match=r"step \d+: .*(loss is|no longer finite|NaN or infinite).*lower train\.learning_rate"
    ):
        train(config, tiny_data(config), tmp_path)


def test_a_variance_branch_that_explodes_is_told_in_words(tmp_path: Path) -> None:
    config = tiny_config(loss={"beta": 10.0, "first_positive_weight": 0.05}, train={"learning_rate": 0.1})
    train(config, tiny_data(config), tmp_path)
    assert "the variances have exploded" in str(log(tmp_path)[-1]["warning"])


def test_a_healthy_variance_branch_is_left_in_peace() -> None:
    assert diagnose(1.0) is None
    assert "died" in str(diagnose(1e-4))


def test_no_file_of_the_users_is_overwritten(tmp_path: Path) -> None:
    config = tiny_config(train={"steps": 10})
    data = tiny_data(config)
    own = tmp_path / "own"
    own.mkdir()
    (own / "config.toml").write_text("# mine\n" + tiny_config(train={"steps": 11}).to_toml())
    logged = tmp_path / "logged"
    logged.mkdir()
    (logged / "log.jsonl").write_text("mine\n")
    for folder in (own, logged):
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        with pytest.raises(RunError, match="already holds a run"):
            train(config, data, folder)
        assert before == {p.name: p.read_bytes() for p in folder.iterdir()}


def test_a_run_killed_before_its_first_checkpoint_starts_again_with_its_config_as_it_is(tmp_path: Path) -> None:
    config = tiny_config(train={"steps": 10})
    text = "# a remark\n" + config.to_toml()
    (tmp_path / "config.toml").write_text(text)
    (tmp_path / "log.jsonl").write_text('{"step": 5}\n')
    train(config, tiny_data(config), tmp_path)
    assert (tmp_path / "config.toml").read_text() == text
    assert [record["step"] for record in log(tmp_path)] == [5, 10]


def test_lines_of_the_log_that_are_none_are_dropped_on_resume(tmp_path: Path) -> None:
    config = tiny_config(train={"steps": 10})
    data = tiny_data(config)
    train(config, data, tmp_path)
    before = log(tmp_path)
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b'hello\n[1]\n{"loss": 3}\n\xff\n')
    train(config, data, tmp_path, resume=True)
    assert log(tmp_path) == before


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path) -> None:
    config = tiny_config(train={"learning_rate": 1e38, "warmup": 0, "checkpoint_every": 1})
    with pytest.raises(TrainingError, match=r"step \d+: .*; lower train\.learning_rate"):
        train(config, tiny_data(config), tmp_path)
    checkpoint = tmp_path / "checkpoint.safetensors"
    if checkpoint.exists():
        assert all(torch.isfinite(value).all() for value in load_file(checkpoint).values())
    assert not (tmp_path / "model.safetensors").exists()


def test_a_checkpoint_without_all_of_the_optimisers_memory_is_refused(tmp_path: Path) -> None:
    config = tiny_config(train={"steps": 10})
    data = tiny_data(config)
    train(config, data, tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    tensors, metadata = load_tensors(path)
    save_tensors(path, {name: t for name, t in tensors.items() if not name.startswith("optimiser/0.")}, metadata)
    with pytest.raises(RunError, match="of another model"):
        train(config, data, tmp_path, resume=True)
    save_tensors(path, tensors, metadata | {"step": "-5"})
    with pytest.raises(RunError, match="step -5"):
        train(config, data, tmp_path, resume=True)


def test_the_weight_of_matching_pairs_comes_down_in_the_first_half() -> None:
    config = tiny_config(loss={"positive_weight": 0.05, "first_positive_weight": 0.5})
    trainer = Trainer(config, build_parts(config, tiny_data(config)))
    trainer.step = config.train.steps // 4
    trainer.take_step()
    assert trainer.parts.loss.positive_weight == pytest.approx((0.5 * 0.05) ** 0.5)
