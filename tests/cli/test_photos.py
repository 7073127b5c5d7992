"""Images of your own, from a folder to decisions, as a user types it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, arrays_of, check_refused
from data.photos.album import BROKEN, fill_album, portrait

from hedged import Embedder
from hedged.data.tables import read_parquet
from hedged.decisions.pairs import LEAST_IDENTITIES
from hedged.training import build_data, load_config, loop, train

CONFIG = """
[data]
source = "images"
path = "{path}"
size = 32
cached_size = 36
test_share = 0.4
validation_share = 0.3
[model]
backbone = "mobilenet"
width = 0.05
dim = 3
[train]
steps = 6
warmup = 1
batch_size = 24
classes_per_batch = 4
images_per_class = 4
learning_rate = 3e-3
weight_decay = 1e-2
checkpoint_every = 3
log_every = 2
"""


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEDGED_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_album(tmp_path_factory.mktemp("photos") / "album", 20, 6)


@pytest.fixture(scope="module")
def photo_run(album: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run, for tests that only add to it."""
    folder = tmp_path_factory.mktemp("photo-run")
    (folder / "c.toml").write_text(CONFIG.format(path=album))
    config = load_config(folder / "c.toml")
    train(config, build_data(config).train, folder / "run")
    return folder / "run"


def test_too_few_to_calibrate_on_are_told_before_the_training(hedged: Hedged, album: Path, tmp_path: Path) -> None:
    assert loop.TO_CALIBRATE == LEAST_IDENTITIES
    (tmp_path / "c.toml").write_text(CONFIG.format(path=album))
    told = hedged("train", tmp_path / "c.toml", "--out", tmp_path / "few").err
    assert "4 identities are kept for validation, too few for `hedged calibrate`, which needs 10" in told
    assert "set data.validation_share = 0.85 (0.3 now) and train again" in told
    assert told.index("too few") < told.index("training")
    (tmp_path / "c.toml").write_text(CONFIG.format(path=album).replace("test_share = 0.4", "test_share = 0.1"))
    enough = hedged("train", tmp_path / "c.toml", "--out", tmp_path / "enough", "--set", "data.validation_share=0.55")
    assert (enough.code, "too few" in enough.err) == (0, False), enough.err


def test_a_folder_of_1000_images_of_which_30_are_broken_in_every_way(hedged: Hedged, tmp_path: Path) -> None:
    album = fill_album(tmp_path / "album", 97, 10, size=(34, 34))
    broken = [f"{i}-{name}" for i in range(3) for name in BROKEN]
    for i, name in enumerate(broken):
        (album / f"{3 * i:02d}" / name).write_bytes(BROKEN[name.split("-", 1)[1]]())
    assert sum(path.is_file() for path in album.rglob("*")) == 1000
    (tmp_path / "c.toml").write_text(CONFIG.format(path=album))
    result = hedged("train", tmp_path / "c.toml", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "30 of 1,000 images are broken and skipped" in result.err
    for name in broken:
        assert name in result.err
    assert "trained 6 steps on photos in" in result.out
    refused = hedged("train", tmp_path / "c.toml", "--out", tmp_path / "new", "--set", "data.broken=refuse")
    check_refused(refused, "30 of 1,000 images are broken", *broken)
    assert not (tmp_path / "new" / "config.toml").exists()


def test_interrupted_and_resumed_a_run_ends_with_the_same_weights(
    hedged: Hedged, album: Path, photo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedged.data import PhotoStream

    whole = PhotoStream.batch

    def crash(self: PhotoStream, step: int) -> object:
        if step == 4:
            raise KeyboardInterrupt
        return whole(self, step)

    (tmp_path / "c.toml").write_text(CONFIG.format(path=album))
    with monkeypatch.context() as patch:
        patch.setattr(PhotoStream, "batch", crash)
        check_refused(hedged("train", tmp_path / "c.toml", "--out", tmp_path / "run"), "interrupted")
    assert hedged("train", tmp_path / "c.toml", "--out", tmp_path / "run", "--resume").code == 0
    weights = (photo_run / "model.safetensors").read_bytes()
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == weights


def test_evaluate_measures_identities_that_were_held_out(hedged: Hedged, photo_run: Path) -> None:
    result = hedged("evaluate", photo_run, "--report")
    assert result.code == 0, result.err
    assert "48 test images of 8 identities" in result.out
    assert "balanced accuracy" in result.out
    metrics = json.loads((photo_run / "metrics.json").read_text())
    for name in ("verification_ap", "knn_accuracy", "uncertainty"):
        assert set(metrics[name]) == {"clean", "corrupt"}
    assert metrics["decisions"]["pairs"] == 48 * 47 // 2
    assert metrics["decisions"]["threshold"]["chosen_on"] == "validation identities"
    assert "grey rectangle" in metrics["test_set"]["corruption"]
    page = (photo_run / "report.html").read_text()
    assert "Same or not?" in page
    assert "data:image/jpeg" in page
    assert "η is the same for every input" in page  # six steps have taught the network nothing yet
    assert "same identity" in page


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
def test_names_that_are_not_utf8(hedged: Hedged, tmp_path: Path) -> None:
    """Of identities, photos, runs, stores and tables: all is done, and the report is written."""
    odd = tmp_path / os.fsdecode(b"\xffodd")
    odd.mkdir()
    album = fill_album(tmp_path / "album", 20, 6)
    for folder in sorted(album.iterdir()):
        for photo in sorted(folder.iterdir()):
            photo.rename(folder / (os.fsdecode(b"\xfe") + photo.name))
        folder.rename(album / (folder.name + os.fsdecode(b"r\xffx")))
    photos, run, store, table = sorted(album.glob("*/*")), odd / "run", odd / "a.db", odd / "a.parquet"
    (odd / "c.toml").write_text(CONFIG.format(path=album))
    for words in (
        ["train", odd / "c.toml", "--out", run],
        ["evaluate", run, "--report"],
        ["embed", run, album, "--out", table],
        ["index", "build", run, store, album, "--folder-labels"],
        ["search", run, store, photos[0]],
        ["identify", run, store, photos[0]],
        ["match", run, *photos[:2]],
    ):
        result = hedged(*words)
        assert result.code == 0, result.err
    assert "Same or not?" in (run / "report.html").read_text(encoding="utf-8")
    assert len(read_parquet(table, "nothing")) == len(photos)
    (odd / "pairs.csv").write_bytes(b"pathA,pathB,same\na\xff.png,b.png,1\n")
    check_refused(hedged("evaluate", run, "--pairs", odd / "pairs.csv"), "cannot be read as CSV", "utf-8")


def test_evaluate_on_the_validation_identities(hedged: Hedged, photo_run: Path) -> None:
    metrics = json.loads(hedged("evaluate", photo_run, "--split", "validation", "--json").out)
    assert metrics["test_set"]["classes"] == 4
    assert "no validation part" in metrics["decisions"]["threshold"]["chosen_on"]
    check_refused(hedged("evaluate", photo_run, "--split", "seen"), "test sets are test, validation, not seen")


def test_evaluate_listed_pairs(hedged: Hedged, album: Path, photo_run: Path, tmp_path: Path) -> None:
    rows = [f"{i:02d}/0.jpg,{j:02d}/1.jpg,{int(i == j)}" for i in range(6) for j in range(6)]
    (tmp_path / "p.csv").write_text("\n".join(["pathA,pathB,same", *rows]))
    result = hedged("evaluate", photo_run, "--pairs", tmp_path / "p.csv", "--images", album)
    assert result.code == 0, result.err
    assert "36 pairs of" in result.out
    assert "chosen on validation identities" in result.out
    kept = json.loads((photo_run / "metrics-pairs.json").read_text())
    assert kept["decisions"]["matches"] == 6
    missing = hedged("evaluate", photo_run, "--pairs", tmp_path / "none.csv")
    check_refused(missing, "there is no list of pairs")
    check_refused(hedged("evaluate", photo_run, "--pairs", tmp_path / "p.csv", "--report"), "--pairs goes with neither")


def test_embed_and_match_take_photos_of_any_size(hedged: Hedged, photo_run: Path, tmp_path: Path) -> None:
    portrait(1, 7, (300, 150)).save(tmp_path / "wide.png")
    portrait(1, 8, (20, 90)).convert("L").save(tmp_path / "tall.jpg")
    out = tmp_path / "two.npz"
    assert hedged("embed", photo_run, tmp_path, "--out", out).code == 0
    content = arrays_of(out)
    assert content["means"].shape == (2, 3)
    told = json.loads(hedged("match", photo_run, tmp_path / "tall.jpg", tmp_path / "wide.png", "--json").out)
    np.testing.assert_allclose([x["uncertainty"] for x in told["images"]], content["uncertainty"], rtol=1e-4)
    (tmp_path / "bad.jpg").write_bytes(BROKEN["half.jpg"]())
    (tmp_path / "none.png").touch()
    refused = hedged("embed", photo_run, tmp_path, "--out", tmp_path / "all.npz")
    check_refused(refused, "2 of 4 files cannot be embedded", "bad.jpg", "none.png", "--skip-broken")
    skipping = hedged("embed", photo_run, tmp_path, "--out", tmp_path / "all.npz", "--skip-broken")
    assert skipping.code == 0, skipping.err
    assert "none.png" in skipping.err
    np.testing.assert_allclose(arrays_of(tmp_path / "all.npz")["means"], content["means"], rtol=1e-4, atol=1e-6)
    check_refused(hedged("match", photo_run, tmp_path / "bad.jpg", tmp_path / "wide.png"), "bad.jpg cannot be read")
    assert Embedder.load(photo_run).architecture.resize == 36


def test_a_flipped_bit_in_the_cache_is_told(
    hedged: Hedged, album: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "c.toml").write_text(CONFIG.format(path=album))
    assert hedged("train", tmp_path / "c.toml", "--out", tmp_path / "run").code == 0
    (pixels,) = (tmp_path / "cache").rglob("pixels.npy")
    content = bytearray(pixels.read_bytes())
    content[200::5000] = bytes(one ^ 8 for one in content[200::5000])
    pixels.write_bytes(content)
    for command in (("train", tmp_path / "c.toml", "--out", tmp_path / "again"), ("evaluate", tmp_path / "run")):
        check_refused(hedged(*command), "in it is not what was written): delete that folder")


def test_photos_that_have_gone_are_told(hedged: Hedged, photo_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("model.json", "model.safetensors"):
        (run / name).write_bytes((photo_run / name).read_bytes())
    (run / "config.toml").write_text(CONFIG.format(path=tmp_path / "gone"))
    check_refused(hedged("evaluate", run), "there is no", "gone")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("data.source=photos", "data.source is one of features, images, mnist, offline"),
        ("data.digits=2", 'data.source = "images" has no setting digits: leave it out'),
        ("data.siz=40", "did you mean size?"),
        ("data.size=64", "data.cached_size = 36 must be at least data.size = 64"),
        ("data.test_pattern=x", "go together"),
        ("data.test_share=0.0", "leaves nothing to test"),
        ("data.split=column", 'a column "split"'),
        ("data.identity=(x)(y)", "2 groups, expected one"),
        ("data.path=nowhere", "there is no nowhere"),
        ("train.batch_size=500", "to the 48 images there are"),
        ("model.width=9.0", "width from 1/32 to 4"),
    ],
)
def test_settings_that_do_not_fit(hedged: Hedged, album: Path, tmp_path: Path, setting: str, words: str) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.format(path=album))
    check_refused(hedged("train", tmp_path / "c.toml", "--out", tmp_path / "run", "--set", setting), words)
