"""What a newcomer stumbles over in the first hour, as it is typed."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from cli.commands import Hedged, check_refused
from PIL import Image

from hedged import Embedder, Gaussian, Point
from hedged.cli import _inputs
from hedged.cli._output import print_table
from hedged.data import list_photos, open_features, read_pairs
from hedged.decisions import Decider, Policy, Temperature, guess
from hedged.training import Run, load_config


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Seven images of three identities, of the size of the model."""
    pixels = np.random.default_rng(0).integers(0, 256, (7, 28, 56), dtype=np.uint8)
    for i, image in enumerate(pixels):
        (tmp_path / "photos" / f"{i % 3}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "photos" / f"{i % 3}" / f"{i}.png")
    return tmp_path / "photos"


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids that were embedded, in chunks of two."""
    done: list[str] = []
    each = _inputs.embedded

    def counted(*arguments: object, **named: object) -> object:
        for some, z in each(*arguments, **named):  # type: ignore[arg-type]
            done.extend(some.ids)
            yield some, z

    monkeypatch.setattr(_inputs, "CHUNK", 2)
    monkeypatch.setattr(_inputs, "embedded", counted)
    return done


def test_an_interrupted_build_is_continued_by_the_command_it_names(
    hedged: Hedged, finished_run: Path, photos: Path, tmp_path: Path, embedded: list[str]
) -> None:
    broken = photos / "1" / "4.png"
    whole = broken.read_bytes()
    broken.write_bytes(b"broken")
    store = tmp_path / "a b.db"
    stopped = hedged("index", "build", finished_run, store, photos, "--folder-labels")
    check_refused(stopped, "4.png", f"{store} holds 4 rows now, 7 inputs were given", "--skip-existing")
    again = hedged("index", "build", finished_run, store, photos)
    check_refused(again, "exists already and holds 4 rows", "--skip-existing")
    broken.write_bytes(whole)
    named = next(line for line in stopped.err.splitlines() if line.startswith("  hedged index add "))
    assert named == f"  hedged index add {finished_run} '{store}' {photos} --skip-existing --folder-labels"
    before = list(embedded)
    result = hedged(*shlex.split(named)[1:])
    assert result.out == f"added 3 embeddings to {store}, 4 were there; it holds 7 now\n", result.err
    assert not set(before[:4]) & set(embedded[len(before) :])
    assert hedged("index", "add", finished_run, store, photos, "--skip-existing").out.startswith("added 0 embeddings")
    check_refused(hedged("index", "add", finished_run, store, photos, "--skip-existing", "--replace"), "give one")


@pytest.mark.parametrize("mode", ["--skip-existing", "--replace"])
def test_an_interrupted_add_names_its_options(
    hedged: Hedged, finished_run: Path, photos: Path, tmp_path: Path, embedded: list[str], mode: str
) -> None:
    store, table = tmp_path / "a.db", tmp_path / "t.csv"
    table.write_text("id,colour\n" + "".join(f"{one},red\n" for one in photos.rglob("*.png")), encoding="utf-8")
    assert hedged("index", "build", finished_run, store, photos / "0" / "0.png").code == 0
    broken = photos / "1" / "4.png"
    broken.write_bytes(b"broken")
    stopped = hedged("index", "add", finished_run, store, photos, mode, "--metadata", table)
    assert f"{photos} {mode} --metadata {table}\n" in stopped.err
    assert ("what is there is not embedded again" in stopped.err) == (mode == "--skip-existing")


def test_ids_that_are_given_twice_are_refused_before_anything_is_stored(hedged: Hedged, tmp_path: Path) -> None:
    """However far apart they are: rows are stored some at a time."""
    generator, run, store = np.random.default_rng(0), tmp_path / "head", tmp_path / "a.db"
    X, y = generator.normal(size=(600, 8)).astype(np.float32), np.repeat(np.arange(60), 10)
    np.savez(tmp_path / "v.npz", features=X + 3 * generator.normal(size=(60, 8))[y], labels=y)
    assert hedged("retrofit", tmp_path / "v.npz", "--out", run, "--validation-share", 0).code == 0
    ids = np.array([f"row {i}" for i in range(600)])
    ids[599] = ids[0]
    np.savez(tmp_path / "twice.npz", features=X, ids=ids)
    words = "1 ids are given twice, such as 'row 0'"
    check_refused(hedged("index", "build", run, store, tmp_path / "twice.npz"), words)
    assert not store.exists()
    ids[599] = "row 599"
    np.savez(tmp_path / "once.npz", features=X[:10], ids=ids[:10])
    assert hedged("index", "build", run, store, tmp_path / "once.npz").code == 0
    check_refused(hedged("index", "add", run, store, tmp_path / "twice.npz", "--skip-existing"), words)


def test_rows_are_listed(hedged: Hedged, finished_run: Path, photos: Path, tmp_path: Path) -> None:
    store, table = tmp_path / "a.db", tmp_path / "t.csv"
    table.write_text(f"id,colour\n{photos}/0/0.png,red\nnowhere.png,blue\n", encoding="utf-8")
    built = hedged("index", "build", finished_run, store, photos, "--folder-labels", "--metadata", table)
    assert "says nothing of 6 of 7 inputs" in built.err
    assert "has 1 rows of inputs that are not given" in built.err
    listed = json.loads(hedged("index", "list", store, "--json", "--limit", "2").out)
    assert listed["rows"] == 7
    first = listed["listed"][0]
    assert 0 <= first["metadata"].pop("novelty") <= 1  # which the model tells
    assert first == {"id": f"{photos}/0/0.png", "label": "0", "metadata": {"colour": "red"}}
    some = hedged("index", "list", store, "--where", "label=2")
    assert some.out.startswith(f"2 rows of {store}")
    assert f"{photos}/2/5.png" in some.out
    assert "colour" not in some.out
    check_refused(hedged("index", "list", store, "--where", "size=2"), "size")


@pytest.mark.parametrize("width", [10, 60, 100])
def test_tables_fit_80_columns_and_cut_nothing(capsys: pytest.CaptureFixture[str], width: int) -> None:
    names = ["i" * width, "j" * (width // 2)]
    header = ["id", "label", "match probability", "uncertainty", "rank", "calibrated", "decision"]
    rows = [[name, "rex", "0.1234", "0.4321", "1", "0.9999", "accept"] for name in names]
    print_table("title", header, rows)
    print_table("title", header, [[name, "l" * width, *row[2:]] for name, row in zip(names, rows, strict=True)])
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines if "iii" not in line and "lll" not in line)
    for name in names:
        assert sum(name in line for line in lines) >= 2
    assert sum("0.1234" in line for line in lines) == 4


def test_tables_on_a_terminal_cut_nothing_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    for width in (20, 70, 120):
        print_table("title", ("id", "label", "probability"), [("i" * width, "rex", "0.1234")])
        lines = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
        assert any("i" * width in line for line in lines)
        assert all(len(line) <= max(80, width) for line in lines)


def test_only_one_that_is_likelier_than_the_rest_is_accepted(
    hedged: Hedged, run: Path, photos: Path, tmp_path: Path
) -> None:
    store = tmp_path / "a.db"
    assert hedged("index", "build", run, store, photos, "--folder-labels").code == 0
    Decider(Embedder.load(run).fingerprint(), Temperature(1.0, 0.0), 0.5, Policy(-99.0, -98.0)).save(str(run))
    for options, decision, named in (
        (("--none", "0.999999"), "abstain", False),
        (("--none", "0.000001"), "abstain", True),  # but hardly more than the others of three
        (("--none", "0.000001", "--where", "label=0"), "accept", True),
    ):
        command = ("identify", run, store, photos / "0", *options)
        out = hedged(*command).out
        titles = [line for line in out.splitlines() if "(uncertainty" in line]
        assert len(titles) == 3
        assert all(line.endswith(f", {decision})") for line in titles), titles
        assert ("none of these (" in out) != named
        told = json.loads(hedged(*command, "--json").out)
        assert {one["decision"] for one in told} == {decision}
        assert {one["probability"] >= 0.5 for one in told if one["label"]} <= {decision == "accept"}


def test_without_a_calibration_match_still_answers(hedged: Hedged, run: Path, photos: Path) -> None:
    pair = (photos / "0" / "0.png", photos / "0" / "3.png")
    told = json.loads(hedged("match", run, *pair, "--json").out)
    assert told["answer"] in ("same", "different", "unsure")
    assert hedged("match", run, *pair).out.splitlines()[-1] == f"{told['answer']}: {told['rule']}"
    metrics = Run(run).metrics_file()
    for threshold, answer in ((-50.0, "same"), (50.0, "different")):
        metrics.write_text(json.dumps({"decisions": {"threshold": {"log_odds": threshold}}}))
        told = json.loads(hedged("match", run, *pair, "--json").out)
        assert told["answer"] == ("unsure" if "uncertainty" in told["rule"] else answer)
        assert "uncertainty" in told["rule"] or "hedged evaluate" in told["rule"]


def test_the_rule_without_a_calibration() -> None:
    assert guess(9.0, (0.6, 0.0)).answer == "unsure"
    assert guess(9.0, (0.0, 0.0)).answer == "same"
    assert guess(-9.0, (0.4, 0.0)).answer == "different"


def test_linked_folders_are_followed_but_not_in_circles(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("photos/a", "elsewhere/b"):
        (tmp_path / name).mkdir(parents=True)
        Image.new("L", (4, 4)).save(tmp_path / name / "1.png")
    (tmp_path / "photos" / "b").symlink_to(tmp_path / "elsewhere" / "b")
    (tmp_path / "photos" / "a" / "round").symlink_to(tmp_path / "photos")
    (tmp_path / "photos" / "nowhere").symlink_to(tmp_path / "nothing")
    listing = list_photos(str(tmp_path / "photos"))
    assert list(listing.identities) == ["a", "b"]
    assert not caplog.records
    os.link(tmp_path / "elsewhere" / "b" / "1.png", tmp_path / "photos" / "a" / "2.png")
    assert len(list_photos(tmp_path / "photos")) == 3
    assert "are the same file" in caplog.text


def test_folders_that_cannot_be_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("open", "shut"):
        (tmp_path / name).mkdir()
        Image.new("L", (4, 4)).save(tmp_path / name / "1.png")
    scandir = os.scandir

    def refusing(path: Path) -> object:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)  # the superuser may read everything
    assert list(list_photos(tmp_path).identities) == ["open"]
    assert f"{tmp_path / 'shut'} cannot be read (Permission denied)" in caplog.text


def test_one_photo_by_two_paths_is_told(
    hedged: Hedged, finished_run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = hedged("index", "build", finished_run, "a.db", "photos/0/0.png", "./photos/0/0.png", photos / "0" / "0.png")
    assert f"photos/0/0.png and {photos}/0/0.png are the same file: it is taken as two" in built.err
    assert "stored 2 embeddings" in built.out


def test_paths_are_text_or_paths(finished_run: Path, photos: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", features=np.eye(40, 4, dtype=np.float32), labels=np.arange(40) // 2)
    (tmp_path / "pairs.csv").write_text("pathA,pathB,same\n0/0.png,0/3.png,1\n", encoding="utf-8")
    (tmp_path / "c.toml").write_text("[train]\nsteps = 3\nwarmup = 1\n", encoding="utf-8")
    for kind in (str, Path):
        assert len(open_features(kind(tmp_path / "v.npz")).train)
        assert len(read_pairs(kind(tmp_path / "pairs.csv"), kind(photos)).paths) == 2
        assert load_config(kind(tmp_path / "c.toml")).train.steps == 3
        assert Run(kind(finished_run)).state == "finished"
        assert Embedder.load(kind(finished_run)).embed(kind(photos / "0" / "0.png")).mean.shape == (1, 2)
        assert Run(kind("hedged:ndigit-2d")).embedder.match_model is not None


def test_images_as_bytes(finished_run: Path, photos: Path) -> None:
    e, path = Embedder.load(finished_run), photos / "0" / "0.png"
    content = path.read_bytes()
    many: list[str | Path | bytes] = [path, content]
    for given in (content, [content], many):
        torch.testing.assert_close(e.embed(given).mean[-1], e.embed(path).mean[0])
    with pytest.raises(Exception, match="an image given as bytes cannot be read as an image"):
        e.embed(b"nothing")


def test_distributions_move_like_tensors() -> None:
    z = Gaussian(torch.zeros(3, 2, requires_grad=True), torch.ones(3, 2))
    assert z.to("cpu", torch.float64).dtype == z.to("cpu").to(torch.float64).dtype == torch.float64
    assert z.cpu().device.type == "cpu"
    mean, variance = z.numpy()
    np.testing.assert_array_equal(mean, np.zeros((3, 2)))
    np.testing.assert_array_equal(variance, np.ones((3, 2)))
    assert len(Point(torch.zeros(3, 2)).numpy()) == 1


def test_what_cannot_be_done_is_refused_before_the_work(
    hedged: Hedged, run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("work was done")

    (tmp_path / "file").touch()
    monkeypatch.setattr(Embedder, "embed", never)
    monkeypatch.setattr("hedged.models.chunks.Embedder.embed", never)
    check_refused(hedged("embed", run, photos, "--out", tmp_path / "file" / "a.npz"), "cannot write in the folder")
    check_refused(hedged("index", "build", run, tmp_path / "file" / "a.db", photos), "file")
    for wrong in (
        ("--false-match-rate", "1.5"),
        ("--false-match-rate", "0"),
        ("--abstain-rate", "1"),
        ("--base-rate", "2"),
    ):
        check_refused(hedged("calibrate", run, *wrong), wrong[1])
    store = tmp_path / "a.db"
    shutil.copy(tmp_path / "file", store)
    check_refused(hedged("identify", run, store, photos, "--none", "1.5"), "1.5")
    check_refused(hedged("identify", run, store, photos, "--fpir", "5"), "--fpir is a share of strangers", "got 5")


def test_a_place_that_cannot_be_written_is_told_before_the_work(
    hedged: Hedged, run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("work was done")

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    store, there = tmp_path / "a.db", tmp_path / "file" / "a"
    there.parent.touch()
    assert hedged("index", "build", run, store, photos, "--folder-labels").code == 0
    for work in (
        "hedged.models.Embedder.embed",
        "hedged.models.Embedder.embed_with_novelty",
        "hedged.search.read_clusters",
        "hedged.search.read_audit",
        "hedged.data.ndigit_splits",
        "hedged.evaluation.measure",
        "hedged.training.fit_novelty",
    ):
        monkeypatch.setattr(work, never)
    monkeypatch.setattr(Embedder, "embed", never)
    for verb in (
        ["cluster", store, "--out", f"{there}.csv"],
        ["index", "audit", store, "--page", f"{there}.html"],
        ["data", "ndigit", "--offline", "--out", f"{there}.npz"],
        ["data", "ndigit", "--offline", "--preview", f"{there}.png"],
        ["export", run, "--onnx", f"{there}.onnx"],
    ):
        check_refused(hedged(*verb), f"cannot write in the folder {there.parent}", "choose another")
    with monkeypatch.context() as patched:
        patched.setattr("hedged._files.tempfile.TemporaryFile", read_only)
        for verb in (["evaluate", run], ["novelty", run], ["calibrate", run]):
            refused = hedged(*verb)
            check_refused(refused, f"cannot write in the folder {run}", "Read-only", "Make it writable")
            assert "--out" not in refused.err
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    check_refused(hedged("index", "add", run, store, photos, "--replace"), "cannot be written", "make the file and its")


def test_too_few_identities_to_calibrate_say_which_key_to_change(hedged: Hedged, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    np.savez(
        tmp_path / "v.npz",
        features=generator.normal(size=(120, 8)).astype(np.float32),
        labels=np.repeat(np.arange(24), 5),
    )
    assert hedged("retrofit", tmp_path / "v.npz", "--out", tmp_path / "head").code == 0
    refused = hedged("calibrate", tmp_path / "head")
    check_refused(
        refused,
        "identities are too few to calibrate on, 10 are needed",
        "data.validation_share = 0.55 (0.1 now)",
        "--pairs",
    )
