"""Files that are made to break who reads them: exit code 2, one message, nothing written, little time and memory."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, check_refused, snapshot
from PIL import Image

from hedged import Embedder
from hedged import _decode as decode
from hedged.search import Rows, open_store
from hedged.search.engines._checks import header_checksum
from hedged.search.engines._index_file import file_of

DEEP = "[" * 100_000
CONTENTS: dict[str, bytes] = {
    "nested": DEEP.encode(),
    "nested and closed": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "large integer": b'{"format": ' + b"9" * 6000 + b"}",
    "not text": b"\xff\xfe\x00",
    "another type": b"[1, 2]",
}

pytestmark = pytest.mark.usefixtures("within_limits")


def replace_by_special(path: Path) -> Iterator[str]:
    """A pipe, an endless device and a huge file in the place of a file, one after the other."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    yield "a pipe"
    path.unlink()
    path.symlink_to("/dev/zero")
    yield "a device"
    path.unlink()
    with path.open("wb") as file:
        file.truncate(2**36)
    yield "large"
    path.unlink()


@pytest.mark.parametrize("name", ["model.json", "calibration.json", "config.toml", "model.safetensors"])
def test_the_files_of_a_run(hedged: Hedged, run: Path, images: list[Path], name: str) -> None:
    verb = ["evaluate", run] if name == "config.toml" else ["match", run, *images[:2]]
    contents = {**CONTENTS, "dotted": b".".join([b"a"] * 5000) + b" = 1"} if name == "config.toml" else CONTENTS
    for content in contents.values():
        (run / name).write_bytes(content)
        before = snapshot(run)
        check_refused(hedged(*verb), name)
        assert snapshot(run) == before
    for _ in replace_by_special(run / name):
        check_refused(hedged(*verb), name)


def test_a_description_that_claims_a_huge_network(hedged: Hedged, run: Path, images: list[Path]) -> None:
    described = json.loads((run / "model.json").read_text())
    for claims in (
        {"hidden": 65536, "channels": [8, 65536]},
        {"hidden": 65536, "channels": [65536, 65536], "shape": [65536, 65536, 65536], "dim": 65536},
        {"dim": 10**30},
        {"head": "mixture", "components": 65536, "dim": 65536},
    ):
        described["architecture"] |= claims
        (run / "model.json").write_text(json.dumps(described))
        check_refused(hedged("match", run, *images[:2]), "model")


@pytest.mark.parametrize(
    "match_model",
    [[], {"kind": []}, {"kind": "curve", "scale": "x"}, {"kind": "curve", "estimator": 1}, {"kind": "curve", "a": 1},
     {"kind": "curve", "scale": 10**18, "bias": -(10**18)}, None],
)  # fmt: skip
def test_a_description_of_another_match_model(
    hedged: Hedged, run: Path, images: list[Path], match_model: object
) -> None:
    described = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps(described | {"match_model": match_model}))
    result = hedged("match", run, *images[:2])
    if result.code:  # weights follow what is described, so that numbers that can be do no harm
        check_refused(result, "model.json")


@pytest.mark.parametrize(
    "setting", ["train.steps=" + "9" * 5000, "train.steps=" + "[" * 5000, "model.dim=" + str(10**30)]
)
def test_a_setting_on_the_command_line(hedged: Hedged, tiny: Path, tmp_path: Path, setting: str) -> None:
    check_refused(hedged("train", tiny, "--out", tmp_path / "run", "--set", setting), setting.partition("=")[0])
    assert not (tmp_path / "run").exists()


def test_lists_of_pairs(hedged: Hedged, run: Path, tmp_path: Path) -> None:
    for name, content in (
        ("pairs.csv", b"pathA,pathB,same\n" + b"x" * 2**21),
        ("pairs.csv", b'pathA,pathB,same\n"' + b"x,\n" * 100_000),
        ("pairs.csv", b"\0" * 2**21),
        ("pairs.txt", b"x" * 2**21),
        ("pairs.txt", b"name 1 " + b"9" * 6000),
    ):
        (tmp_path / name).write_bytes(content)
        check_refused(hedged("evaluate", run, "--pairs", tmp_path / name), name)
    for _ in replace_by_special(tmp_path / "pairs.txt"):
        check_refused(hedged("evaluate", run, "--pairs", tmp_path / "pairs.txt"), "pairs.txt")


def test_tables_of_metadata(hedged: Hedged, run: Path, images: list[Path], tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    lines = (f'{{"id": "{images[0]}", "x": {value}}}' for value in (DEEP, "[" * 80 + "]" * 80, "9" * 6000, "9" * 400))
    for line in (*lines, "[]", '"id"', "{}"):
        (tmp_path / "a.jsonl").write_text(line)
        result = hedged("index", "build", run, store, *images, "--metadata", tmp_path / "a.jsonl")
        check_refused(result, "a.jsonl")
        assert not store.exists()
    for _ in replace_by_special(tmp_path / "a.jsonl"):
        check_refused(hedged("index", "build", run, store, *images, "--metadata", tmp_path / "a.jsonl"), "a.jsonl")


@pytest.fixture
def store(hedged: Hedged, run: Path, images: list[Path], tmp_path: Path) -> Path:
    built = hedged("index", "build", run, tmp_path / "a.db", *images)
    assert built.code == 0, built.err
    return tmp_path / "a.db"


def alter(store: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Alter the header of a store, with the right checksum, as somebody would on purpose."""
    with closing(sqlite3.connect(store)) as connection:
        uuid, header = connection.execute("SELECT uuid, header FROM store").fetchone()
        changed = change(json.loads(header))
        text = changed if isinstance(changed, str) else json.dumps(changed)
        values = (text, header_checksum(uuid, text))
        connection.execute("UPDATE store SET header = ?, checksum = ?", values)
        connection.commit()


@pytest.mark.parametrize(
    "change",
    [
        {"dim": "2"}, {"dim": 0}, {"dim": 10**18}, {"width": 3}, {"width": None}, {"components": 7}, {"kind": 5},
        {"kind": "unheard"}, {"match": []}, {"match": {"kind": "curve", "scale": "x"}}, {"match": {"kind": "new"}},
        {"fingerprint": None}, {"unheard": 1}, {"dim": True},
    ],
)  # fmt: skip
def test_an_altered_header_of_a_store(
    hedged: Hedged, store: Path, run: Path, images: list[Path], change: dict[str, object]
) -> None:
    alter(store, lambda header: header | change)
    for verb in (["search", run, store, images[0]], ["identify", run, store, images[0]], ["index", "info", "--check"]):
        if verb[0] == "index":
            result = hedged(*verb, store)
            assert result.code == 2 or change.keys() & {"kind", "match", "width"}, result
        else:
            check_refused(hedged(*verb))


@pytest.mark.parametrize("header", [DEEP, "null", "[]", "9" * 6000, "{}", ""])
def test_a_header_that_is_none(hedged: Hedged, store: Path, header: str) -> None:
    alter(store, lambda _: header)
    check_refused(hedged("index", "info", store), "header", "hedged index repair")


@pytest.mark.parametrize("metadata", [DEEP, "null", "9" * 6000, '{"a": ' + "9" * 400 + "}"])
def test_altered_metadata_of_a_store(hedged: Hedged, store: Path, run: Path, images: list[Path], metadata: str) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE item SET metadata = ?", (metadata,))
        connection.commit()
    check_refused(hedged("search", run, store, images[0]), "is damaged")


def test_what_is_no_index_file(hedged: Hedged, store: Path, run: Path, images: list[Path]) -> None:
    for _ in replace_by_special(file_of(store)):
        result = hedged("search", run, store, images[0])
        assert (result.code, "made again" in result.err) == (0, True), result


@pytest.mark.parametrize("number", [2**31, 2**63, 10**30])
@pytest.mark.parametrize("option", ["--ef-search", "--candidates", "-k"])
def test_numbers_that_no_engine_counts_to(
    hedged: Hedged, store: Path, run: Path, images: list[Path], option: str, number: int
) -> None:
    result = hedged("search", run, store, images[0], option, number)
    if option == "--ef-search":
        check_refused(result, "ef_search must be at least 1 and at most 2,147,483,647")
    else:
        assert result.code == 0, result


def test_seeds_and_counts_that_are_too_large(hedged: Hedged, store: Path, run: Path, images: list[Path]) -> None:
    assert hedged("identify", run, store, images[0], "--top", 10**30, "--neighbours", 10**30).code in (0, 2)
    vectors = store.parent / "v.npz"
    np.savez(vectors, features=np.random.default_rng(0).normal(size=(40, 4)), labels=np.arange(40) // 4)
    check_refused(hedged("retrofit", vectors, "--out", store.parent / "head", "--seed", 10**30), "seed")
    assert not (store.parent / "head").exists()


def test_images_that_are_no_files(hedged: Hedged, run: Path, images: list[Path], tmp_path: Path) -> None:
    for what in replace_by_special(tmp_path / "a.png"):
        words = "over the limit" if what == "large" else f"it is {what}, not a file"
        check_refused(hedged("match", run, images[0], tmp_path / "a.png"), "a.png", words)


def test_an_image_of_another_size_is_not_decoded(hedged: Hedged, run: Path, images: list[Path], tmp_path: Path) -> None:
    side = 11_000
    assert side**2 < decode.MAX_PIXELS
    Image.new("1", (side, side)).save(tmp_path / "a.png")
    check_refused(hedged("match", run, images[0], tmp_path / "a.png"), "a.png", "11000")


def test_metadata_from_python_that_could_not_be_read_again(run: Path, store: Path, images: list[Path]) -> None:
    embedder = Embedder.load(run)
    deep: list[object] = []
    for _ in range(3000):
        deep = [deep]
    with open_store(store) as opened:
        for value in (deep, 10**400, [[[10**5000]]]):
            with pytest.raises(ValueError, match="the metadata of 'a' are not JSON"):
                opened.add(Rows(["a"], embedder.embed(images[:1]), embedder.fingerprint(), metadata=[{"x": value}]))
        assert opened.count() == 3
