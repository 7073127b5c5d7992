"""What each verb does when all is well."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, arrays_of
from PIL import Image

from hedged import Embedder, Gaussian, MatchCurve, match_probability


def test_train_then_resume_a_finished_run(hedged: Hedged, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "new" / "run"
    result = hedged("train", tiny, "--out", run, "--set", "train.steps=4", "--set", "model.dim=3")
    assert result.code == 0, result.err
    assert "trained 4 steps" in result.out
    assert f"hedged evaluate {run}" in result.out
    assert Embedder.load(run).architecture.dim == 3
    weights = (run / "model.safetensors").read_bytes()
    assert hedged("train", run / "config.toml", "--out", run, "--resume").code == 0
    assert (run / "model.safetensors").read_bytes() == weights


def test_train_takes_a_config_that_ships_by_name(hedged: Hedged, tmp_path: Path) -> None:
    settings = [f"--set={s}" for s in ("train.steps=2", "train.warmup=0", "data.train_images=1000")]
    assert hedged("train", "demo-offline", "--out", tmp_path / "run", *settings).code == 0


def test_evaluate_prints_a_table_and_keeps_the_numbers(hedged: Hedged, run: Path) -> None:
    result = hedged("evaluate", run)
    assert result.code == 0, result.err
    assert "Verification, average precision\n  clean images" in result.out
    assert "NOT MNIST" in result.out
    metrics = json.loads((run / "metrics.json").read_text())
    for name in ("verification_ap", "knn_accuracy", "uncertainty"):
        assert set(metrics[name]) == {"clean", "corrupt"}
    assert metrics["settings"]["train"]["steps"] == 20
    assert metrics["seconds"]["evaluation"] > 0
    assert not (run / "report.html").exists()


def test_evaluate_json_and_report(hedged: Hedged, run: Path) -> None:
    result = hedged("evaluate", run, "--report", "--json")
    assert json.loads(result.out) == json.loads((run / "metrics.json").read_text())
    page = (run / "report.html").read_text()
    assert "stand-in" in page
    assert "20 steps of 32 images" in page


def test_evaluate_one_test_set_of_a_split_by_number(hedged: Hedged, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert hedged("train", tiny, "--out", run, "--set", "train.steps=4", "--set", "data.split=number").code == 0
    assert json.loads(hedged("evaluate", run, "--split", "unseen", "--json").out)["test_set"]["classes"] == 30
    assert (run / "metrics-unseen.json").exists()
    assert json.loads(hedged("evaluate", run, "--json").out)["test_set"]["classes"] == 70
    assert "70 classes (seen)" in hedged("evaluate", run).out


def test_evaluate_on_digits_held_out_of_training(hedged: Hedged, tiny: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert hedged("train", tiny, "--out", run, "--set", "train.steps=4", "--set", "data.holdout=0.3").code == 0
    validation, test = (hedged("evaluate", run, "--split", name, "--json").out for name in ("validation", "instance"))
    assert json.loads(validation)["verification_ap"] != json.loads(test)["verification_ap"]


def test_embed_writes_npz(hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "new" / "embedded.npz"
    result = hedged("embed", finished_run, images[2], images[0].parent, "--out", out)
    assert result.code == 0, result.err
    assert "embedded 4 images" in result.out
    content = arrays_of(out)
    assert content["ids"].tolist() == [str(path) for path in (images[2], *images)]
    embedder = Embedder.load(finished_run)
    z = embedder.embed([images[2], *images])
    np.testing.assert_allclose(content["means"], z.mean, rtol=1e-5)
    np.testing.assert_allclose(content["variances"], z.variance, rtol=1e-5)
    np.testing.assert_allclose(content["uncertainty"], embedder.uncertainty(z), rtol=1e-5)
    assert content["kind"] == "gaussian"


def test_embedded_rows_are_enough_to_match(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path
) -> None:
    import torch

    out = tmp_path / "embedded.npz"
    assert json.loads(hedged("embed", finished_run, *images, "--out", out, "--json").out)["images"] == 3
    content = arrays_of(out)
    z = Gaussian(torch.from_numpy(content["means"]), torch.from_numpy(content["variances"]))
    curve = MatchCurve(float(content["scale"]), float(content["bias"]))
    told = json.loads(hedged("match", finished_run, images[0], images[1], "--json").out)
    assert match_probability(z[0], z[1], curve).item() == pytest.approx(told["match_probability"], abs=1e-5)


@pytest.mark.parametrize("head", ["gaussian", "mixture", "point"])
def test_embed_writes_parquet(hedged: Hedged, tiny: Path, images: list[Path], tmp_path: Path, head: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run, out = tmp_path / "run", tmp_path / "embedded.parquet"
    settings = {"train.steps": 4, "model.head": head, "model.components": 2 if head == "mixture" else 1}
    settings["loss.kind"] = "soft-contrastive" if head == "point" else "hedged"
    assert hedged("train", tiny, "--out", run, *(f"--set={k}={v}" for k, v in settings.items())).code == 0
    assert hedged("embed", run, *images, "--out", out).code == 0
    table = parquet.read_table(out)
    assert table.column_names == ["ids", "means", "variances", "uncertainty", "novelty"]
    shape = (3, 2, 2) if head == "mixture" else (3, 2)
    assert np.array(table["means"].to_pylist()).shape == shape
    assert table.schema.metadata[b"kind"] == head.encode()
    assert float(table.schema.metadata[b"scale"]) > 0


def test_match_tells_probability_uncertainties_and_bound(
    hedged: Hedged, finished_run: Path, images: list[Path]
) -> None:
    told = json.loads(hedged("match", finished_run, images[0], images[1], "--json").out)
    assert 0 <= told["match_probability"] <= 1
    assert 0 < told["error_bound"] < 1e-3
    assert [image["path"] for image in told["images"]] == [str(images[0]), str(images[1])]
    words = hedged("match", finished_run, images[0], images[1]).out
    assert f"{told['match_probability']:.4f}" in words
    assert f"uncertainty of {images[1]}" in words


def test_data_lists_the_parts(hedged: Hedged) -> None:
    parts = json.loads(hedged("data", "ndigit", "--offline", "--split", "number", "--holdout", "0.1", "--json").out)
    assert [part["part"] for part in parts] == ["train", "validation", "seen", "unseen", "all"]
    assert parts[3] | {"source": ""} == {
        "part": "unseen",
        "digits": 2,
        "images": 9990,
        "classes": 30,
        "fewest_of_a_class": 333,
        "most_of_a_class": 333,
        "source": "",
    }


def test_data_writes_an_index_file_that_it_can_inspect(hedged: Hedged, tmp_path: Path) -> None:
    index, picture = tmp_path / "new" / "index.npz", tmp_path / "twins.png"
    result = hedged("data", "ndigit", "--offline", "--digits", "1", "--out", index, "--preview", picture)
    assert result.code == 0, result.err
    assert "instance" in result.out
    assert "of the training digits" in hedged("data", "ndigit", "--offline", "--index", index).out
    with Image.open(picture) as sheet:
        assert np.asarray(sheet).std() > 0
