"""`hedged retrofit`: vectors in, a run like any other out, or one clear message and nothing written."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, check_refused, snapshot
from typer.testing import CliRunner
from vectors import EACH, IDENTITIES, made_up, write_vectors

from hedged.cli import app
from hedged.cli.retrofit import _print
from hedged.models import Embedder
from hedged.retrofit import Retrofit
from hedged.training import Run, build_data

ROOT = Path(__file__).parents[2]
VALIDATION_SHARE = 0.4  # leaves enough to calibrate on, and few enough to fit to for a fit to be quick


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with vectors and, in `run`, a head fitted to them."""
    folder = tmp_path_factory.mktemp("vectors")
    vectors = write_vectors(folder)
    given = ["retrofit", vectors, "--poor", folder / "worse.npz", "--validation-share", VALIDATION_SHARE]
    made = CliRunner().invoke(app, [str(word) for word in (*given, "--out", folder / "run")])
    assert made.exit_code == 0, made.output
    assert "14 identities, in" in made.stdout
    assert "6 identities were kept from the fit: hedged evaluate" in made.stdout
    assert "10 identities were kept from the fit: hedged calibrate" in made.stdout
    return folder


@pytest.fixture
def run(folder: Path, tmp_path: Path) -> Path:
    """The fitted head, for tests that may change it."""
    return Path(shutil.copytree(folder / "run", tmp_path / "run"))


def test_it_is_fitted_to_those_identities_alone_that_are_not_kept(folder: Path) -> None:
    head, parts = Retrofit.load(folder / "run"), build_data(Run(folder / "run").config)
    assert parts.validation is not None
    assert (head.report_.identities, head.report_.vectors) == (14, 14 * EACH)
    train = parts.train
    again = Retrofit(seed=0).fit(train.clean(), train.labels, poor=train.corrupt(0))
    new = parts.first_test[1].clean()
    np.testing.assert_allclose(again.match_proba(new, new), head.match_proba(new, new), atol=1e-6)
    sets = [set(part.labels.tolist()) for part in (train, parts.validation, parts.first_test[1])]
    assert sum(map(len, sets)) == len(set.union(*sets)) == IDENTITIES


def test_too_few_identities_to_calibrate_on_are_told_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Retrofit.load(folder / "run").report_
    _print(report, {"test": 6, "validation": 9}, folder / "run")
    told = " ".join(capsys.readouterr().out.split())
    assert "9 identities were kept from the fit, too few for `hedged calibrate`, which needs 10" in told
    assert "--validation-share 0.45 --force" in told  # of 14 and these 9


def test_evaluate_and_calibrate(hedged: Hedged, run: Path) -> None:
    evaluated = hedged("evaluate", run, "--report")
    assert evaluated.code == 0, evaluated.err
    assert "48 test vectors of 6 identities" in evaluated.out
    assert "pairs were decided at log-odds of 0.000, chosen on identities that the fit held out" in evaluated.out
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["verification_ap"]["clean"] > max(0.9, metrics["verification_ap"]["corrupt"])
    assert metrics["test_set"]["corruption"] == "they are the vectors of the second file"
    assert metrics["settings"]["retrofit"]["seed"] == 0
    assert set(metrics["ap_correlation"].values()) == {None}  # the cosine has one η for all, but for rounding
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "fitted to vectors by `hedged retrofit`" in page
    calibrated = hedged("calibrate", run)
    assert calibrated.code == 0, calibrated.err
    assert "of 10 identities, drawn, with repetition, from 80 clean validation vectors of" in calibrated.out
    assert json.loads(hedged("evaluate", run, "--json").out)["decisions"]["calibrated"]["abstained"] < 0.5


def verbs(page: Path) -> list[str]:
    """The commands on a page from `hedged retrofit` on, one block of them, without remarks."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if "hedged retrofit" in block and "hedged identify" in block)
    return [command for line in block.splitlines() if (command := line.partition("#")[0].strip())]


def test_the_verbs_of_the_documentation_run(hedged: Hedged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = made_up()
    part = np.select([y < "id10", y < "id20"], ["test", "validation"], "train")
    np.savez(tmp_path / "vectors.npz", features=x, labels=y, split=part)
    np.save(tmp_path / "new.npy", made_up(seed=5)[0][:3])
    monkeypatch.chdir(tmp_path)
    commands = verbs(ROOT / "docs" / "retrofit.md")
    assert verbs(ROOT / "README.md") == commands
    assert len(commands) == 8
    for command in commands:
        program, *words = shlex.split(command)
        done = hedged(*words)
        assert (program, done.code) == ("hedged", 0), done.err


def test_match_and_embed_tell_what_the_head_tells(hedged: Hedged, folder: Path, tmp_path: Path) -> None:
    vectors, head = folder / "vectors.npz", Retrofit.load(folder / "run")
    expected = head.match_proba(made_up()[0], made_up()[0])
    for i, j in ((0, 1), (0, 100)):
        result = hedged("match", folder / "run", f"{vectors}:{i}", f"{vectors}:{j}", "--json")
        found = json.loads(result.out)
        assert found["match_probability"] == pytest.approx(expected[i, j], abs=1e-5)
        assert found["images"][0]["uncertainty"] == pytest.approx(head.uncertainty(made_up()[0][:1])[0], abs=1e-5)
    assert expected[0, 1] > 0.5 > expected[0, 100]
    result = hedged("embed", folder / "run", vectors, "--out", tmp_path / "out.npz")
    assert result.code == 0, result.err
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_allclose(found["means"], head.transform(made_up()[0]), atol=1e-6)
        assert str(found["match_model"]) == "evidence"
        assert float(found["self_temper"]) == head.match_model.settings()["self_temper"]


def test_an_index_has_the_ids_and_labels_of_the_file(hedged: Hedged, folder: Path, tmp_path: Path) -> None:
    x, y = made_up()
    known = tmp_path / "known.npz"
    np.savez(known, features=x[:100], labels=y[:100], ids=[f"row {i}" for i in range(100)])
    np.savez(tmp_path / "more.npz", features=x[100:160], labels=y[100:160])
    store = tmp_path / "people.db"
    assert hedged("index", "build", folder / "run", store, known).code == 0
    assert hedged("index", "add", folder / "run", store, tmp_path / "more.npz").code == 0
    info = json.loads(hedged("index", "info", store, "--json").out)
    assert (info["rows"], info["labels"], info["match_model"]) == (160, 20, "evidence")
    (searched,) = json.loads(hedged("search", folder / "run", store, f"{known}:0", "-k", 3, "--json").out)
    assert [hit["label"] for hit in searched["hits"]] == ["id00"] * 3
    assert searched["hits"][0]["id"] == "row 0"
    expected = Retrofit.load(folder / "run").match_proba(x[:1], x[:1]).item()
    assert searched["hits"][0]["match_probability"] == pytest.approx(expected, abs=1e-5)
    probes = f"{tmp_path / 'more.npz'}:59", f"{folder / 'vectors.npz'}:239"  # one of those, and one of nobody there
    first, second = json.loads(hedged("identify", folder / "run", store, *probes, "--json").out)
    assert first["label"] == "id19"
    assert second["none_probability"] > first["none_probability"]


def test_the_split_of_the_file_is_gone_by(hedged: Hedged, tmp_path: Path) -> None:
    x, y = made_up()
    part = np.where(np.isin(y, ["id03", "id04"]), "test", np.where(y < "id15", "train", "validation"))
    np.savez(tmp_path / "vectors.npz", features=x, labels=y, split=part)
    made = hedged("retrofit", tmp_path / "vectors.npz", "--out", tmp_path / "run", "--json")
    content = json.loads(made.out)
    assert content["kept"] == {"test": 2, "validation": 15}
    assert content["identities"] == 13
    shared = hedged("retrofit", tmp_path / "vectors.npz", "--out", tmp_path / "b", "--test-share", 0.5, "--json")
    assert json.loads(shared.out)["kept"] == {"test": 15, "validation": 2}


def test_all_identities_may_be_fitted_to(hedged: Hedged, tmp_path: Path) -> None:
    x, y = made_up()
    np.save(tmp_path / "vectors.npy", x[: 12 * EACH])
    (tmp_path / "names.txt").write_text("\n".join(y[: 12 * EACH]))
    everything = ("--test-share", 0, "--validation-share", 0, "--labels", tmp_path / "names.txt")
    made = hedged("retrofit", tmp_path / "vectors.npy", "--out", tmp_path / "run", *everything, "--json")
    assert (json.loads(made.out)["identities"], json.loads(made.out)["kept"]) == (12, {})
    for verb in ("evaluate", "calibrate"):
        check_refused(hedged(verb, tmp_path / "run"), "kept no identities to test", "--test-share 0.2")


def test_a_folder_with_a_run_is_not_overwritten_unless_told(hedged: Hedged, folder: Path, run: Path) -> None:
    (run / "calibration.json").write_text("of the head before")
    before = snapshot(run)
    check_refused(hedged("retrofit", folder / "vectors.npz", "--out", run), "model.json", "--force")
    assert snapshot(run) == before
    told = ("--validation-share", VALIDATION_SHARE, "--force")
    assert hedged("retrofit", folder / "vectors.npz", "--out", run, *told).code == 0
    assert hedged("match", run, f"{folder / 'vectors.npz'}:0", f"{folder / 'vectors.npz'}:1").code == 0
    assert Embedder.load(run).fingerprint() != Embedder.load(folder / "run").fingerprint()


def test_a_run_of_another_kind_is_not_overwritten(hedged: Hedged, folder: Path, finished_run: Path) -> None:
    before = snapshot(finished_run)
    check_refused(hedged("retrofit", folder / "vectors.npz", "--out", finished_run), "--force")
    assert snapshot(finished_run) == before


def test_what_cannot_be_fitted_is_told_and_nothing_written(hedged: Hedged, folder: Path, tmp_path: Path) -> None:
    x, y = made_up()
    np.save(tmp_path / "bare.npy", x)
    np.savez(tmp_path / "one.npz", features=x[:8], labels=y[:8])
    np.savez(tmp_path / "short.npz", features=x[:-1], labels=y[:-1])
    cases: list[tuple[list[object], list[str]]] = [
        ([tmp_path / "bare.npy"], ["--labels"]),
        ([tmp_path / "one.npz"], ["two identities"]),
        ([tmp_path / "missing.npz"], ["there is no file"]),
        ([folder / "vectors.npz", "--poor", tmp_path / "short.npz"], ["row by row"]),
    ]
    for given, words in cases:
        check_refused(hedged("retrofit", *given, "--out", tmp_path / "run"), *words)
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("size = 12", "size = 3"), ["inputs of (12,)", "vectors are of (3,)"]),
        (("path = ", "pth = "), ["data.pth: unknown key; did you mean path?"]),
        (('split = "share"', 'split = "pattern"'), ["go together"]),
        (("vectors.npz", "moved.npz"), ["there is no file", "moved.npz"]),
        (("[retrofit]", "[retrofit"), ["not valid TOML"]),
    ],
)
def test_a_config_that_was_spoilt_is_told(hedged: Hedged, run: Path, change: tuple[str, str], words: list[str]) -> None:
    config = run / "config.toml"
    config.write_text(config.read_text().replace(*change))
    check_refused(hedged("evaluate", run), *words)


def test_damaged_and_foreign_folders_are_told(hedged: Hedged, run: Path, finished_run: Path, tmp_path: Path) -> None:
    vector = f"{run.parent / 'v.npy'}:0"
    np.save(run.parent / "v.npy", made_up()[0])
    check_refused(hedged("match", tmp_path / "nowhere", vector, vector), "holds no model", "hedged retrofit")
    check_refused(hedged("train", run / "config.toml", "--out", tmp_path / "t"), "fitted, not trained")
    shutil.copy(finished_run / "config.toml", run / "config.toml")
    check_refused(hedged("evaluate", run), "the model of another config")
    (run / "model.safetensors").write_bytes(b"short")
    check_refused(hedged("match", run, vector, vector), "damaged or truncated")
    (run / "model.json").unlink()
    check_refused(hedged("match", run, vector, vector), "model.json is missing")
