"""`hedged export`: what it says, what it refuses, and that nothing is left of a file that could not be written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from cli.commands import Hedged, check_refused
from torch.torch_version import TorchVersion

from hedged import Architecture, Embedder
from hedged.runtime import Model


def test_a_score_is_printed_for_an_engine(hedged: Hedged, run: Path) -> None:
    result = hedged("export", run, "--score", "duckdb")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("CREATE OR REPLACE MACRO hedged_log_odds(mean1, variance1, mean2, variance2) AS\n")
    told = json.loads(hedged("export", run, "--score", "duckdb", "--json").out)
    assert told == {"engine": "duckdb", "score": result.out}


def test_one_of_file_and_score_is_given(hedged: Hedged, run: Path, tmp_path: Path) -> None:
    check_refused(hedged("export", run), "give one of the two")
    check_refused(hedged("export", run, "--onnx", tmp_path / "a.onnx", "--score", "duckdb"), "give one of the two")
    check_refused(hedged("export", run, "--score", "oracle"), "no engine 'oracle'", "postgresql, clickhouse, duckdb")


def test_a_run_is_exported_with_its_calibration_and_says_so(hedged: Hedged, run: Path, images: list[Path]) -> None:
    file = run.parent / "new" / "model.onnx"
    assert hedged("calibrate", run).code == 0
    result = hedged("export", run, "--onnx", file, "--json")
    assert (result.code, result.err) == (0, "")
    told = json.loads(result.out)
    assert (told["out"], told["bytes"]) == (str(file), file.stat().st_size)
    assert told["input"] == {
        "name": "input",
        "dtype": "float32",
        "shape": [1, 28, 56],
        "kind": "image",
        "layout": "channels, height, width",
        "values": [0.0, 1.0],
        "colour": "grey",
        "resize": None,
    }
    assert told["outputs"] == ["means", "variances", "eta", "novelty"]
    assert str(run.parent).encode() not in file.read_bytes(), "the file tells where it was made"
    model, (a, b, _) = Model.load(file), images
    said = json.loads(hedged("match", run, a, b, "--json").out)
    decided = model.decide([a], [b])
    assert abs(model.match([a], [b]).item() - said["match_probability"]) <= 1e-4
    assert abs(decided.probability.item() - said["calibrated"]["probability"]) <= 1e-4
    assert decided.verdict.item() == said["decision"]
    before = file.read_bytes()
    check_refused(hedged("export", run, "--onnx", file), "exists already", "--force")
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["model.onnx"]


def test_what_cannot_be_exported_is_refused_and_leaves_nothing(hedged: Hedged, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    check_refused(hedged("export", tmp_path / "none", "--onnx", file), "none")
    check_refused(hedged("export", "hedged:nothing", "--onnx", file), "hedged:ndigit-2d")
    architecture = Architecture(backbone="vectors", shape=(5,), head="full", dim=2)
    Embedder.new(architecture, seed=0).save(tmp_path / "turned")
    check_refused(hedged("export", tmp_path / "turned", "--onnx", file), "not diagonal", "gaussian")
    (tmp_path / "text").write_text("no folder")
    check_refused(hedged("export", "hedged:ndigit-2d", "--onnx", tmp_path / "text" / "model.onnx"), "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text", "turned"]


def test_a_missing_package_is_named_with_what_to_install(
    hedged: Hedged, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    check_refused(
        hedged("export", run, "--onnx", tmp_path / "m.onnx"),
        "onnxscript is not installed",
        "pip install 'hedged[onnx]'",
    )


def test_a_torch_that_cannot_export_is_named(
    hedged: Hedged, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.6.0+cpu"))
    check_refused(hedged("export", run, "--onnx", tmp_path / "m.onnx"), "needs torch 2.13 or newer, this is 2.6.0+cpu")
