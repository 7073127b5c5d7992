"""A run folder: its state, its files, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import save_file
from tiny import tiny_config, tiny_data

from hedged import _tensors
from hedged.errors import DataError, RunError
from hedged.training import Config, Run, parse_config, train


@pytest.fixture(scope="module")
def config() -> Config:
    return tiny_config(train={"steps": 10})


@pytest.fixture
def run(config: Config, tmp_path: Path) -> Run:
    train(config, tiny_data(config), tmp_path / "run")
    return Run(tmp_path / "run")


def test_the_state_of_a_folder(run: Run, tmp_path: Path) -> None:
    assert Run(tmp_path / "nowhere").state == "new"
    states = [run.state]
    for file in (run.model_file, run.checkpoint_file):
        file.unlink()
        states.append(run.state)
    assert states == ["finished", "unfinished", "new"]


def test_all_that_training_leaves_has_a_name(run: Run, config: Config) -> None:
    files = {run.config_file, run.log_file, run.checkpoint_file, run.model_file}
    weights = {run.folder / "model.safetensors", run.folder / "novelty.safetensors"}
    assert files | weights == set(run.folder.iterdir())
    found, embedder = run.trained()
    assert (found, run.digest, embedder.notes["steps"]) == (config, config.digest(), 10)


def test_files_that_are_written_later_are_named_after_their_part() -> None:
    run = Run(Path("runs/first"))
    assert run.metrics_file() == Path("runs/first/metrics.json")
    assert run.metrics_file("unseen") == Path("runs/first/metrics-unseen.json")
    assert run.report_file("pairs") == Path("runs/first/report-pairs.html")
    assert run.calibration_file == Path("runs/first/calibration.json")
    assert run.reliability_file == Path("runs/first/reliability.png")


def test_an_unfinished_run_has_no_model_and_says_how_to_get_one(run: Run) -> None:
    run.model_file.unlink()
    with pytest.raises(RunError, match=r"not finished.*hedged train .*config\.toml --out .* --resume"):
        _ = run.embedder


def test_a_model_remembers_the_digest_of_its_settings_under_either_name(run: Run, config: Config) -> None:
    content = json.loads(run.model_file.read_text())
    content["notes"]["fingerprint"] = content["notes"].pop("digest")
    run.model_file.write_text(json.dumps(content))
    assert Run(run.folder).digest == config.digest()


def test_a_checkpoint_names_its_settings_under_either_name(run: Run, config: Config) -> None:
    with safe_open(run.checkpoint_file, framework="pt") as file:
        metadata = file.metadata()
    tensors = run.checkpoint(config).tensors
    metadata["fingerprint"] = metadata.pop("digest")
    del metadata["checksum"]  # which runs of that time did not have either
    save_file(tensors, run.checkpoint_file, metadata)
    assert run.checkpoint(config).digest == config.digest()
    del metadata["fingerprint"]
    save_file(tensors, run.checkpoint_file, metadata)
    with pytest.raises(RunError, match="another config"):
        run.checkpoint(config)


def test_a_folder_is_made_ready_or_refused(run: Run, config: Config, tmp_path: Path) -> None:
    new = Run(tmp_path / "a" / "new")
    assert new.prepare(config) is None
    assert new.folder.is_dir()
    found = run.prepare(config, resume=True)
    assert found is not None
    assert found.step == 10
    with pytest.raises(RunError, match="already holds a run"):
        run.prepare(config)
    with pytest.raises(RunError, match="no checkpoint to resume from"):
        new.prepare(config, resume=True)


def test_resuming_reads_the_checkpoint_once(run: Run, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    def counted(path: Path, framework: str) -> object:
        opened.append(path)
        return safe_open(path, framework)

    monkeypatch.setattr(_tensors, "safe_open", counted)
    train(config, tiny_data(config), run.folder, resume=True)
    assert opened == [run.checkpoint_file]


def test_data_are_opened_once_the_folder_is_found_fit(run: Run, tmp_path: Path) -> None:
    nowhere = parse_config({"data": {"source": "images", "path": str(tmp_path / "nowhere")}})
    with pytest.raises(RunError, match="already holds a run"):
        train(nowhere, None, run.folder)
    with pytest.raises(DataError, match="nowhere"):
        train(nowhere, None, tmp_path / "new")


def test_a_resumed_run_remembers_where_its_photos_have_moved(tmp_path: Path) -> None:
    first, second = (parse_config({"data": {"source": "images", "path": name}}) for name in ("first", "second"))
    run = Run(tmp_path)
    run.keep_config(first)
    remarked = "# my remark\n" + run.config_file.read_text()
    run.config_file.write_text(remarked)
    run.keep_config(first)
    assert run.config_file.read_text() == remarked
    assert first.digest() == second.digest()
    run.keep_config(second)
    assert Run(tmp_path).config == second
    run.config_file.write_text("damaged")
    run.keep_config(second)
    assert Run(tmp_path).config == second


def test_training_imports_nothing_that_measures_or_draws() -> None:
    code = (
        "import sys; from hedged.cli import main; sys.argv = ['hedged', 'train', 'nowhere.toml', '--out', 'x']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "import hedged.training.loop, hedged.training.run\n"
        "heavy = {'hedged.evaluation', 'hedged.decisions', 'hedged.plots', 'matplotlib', 'sklearn'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
