"""`hedged index`, `hedged search` and `hedged identify`, as a user types them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, check_refused, snapshot

from hedged import Architecture, Embedder
from hedged.decisions import Decider, Policy, Temperature
from hedged.search import Header, Rows, SqliteStore


@pytest.fixture
def people(images: list[Path], tmp_path: Path) -> Path:
    """A folder of two identities, of two images and one."""
    for name, some in (("ann", images[:2]), ("bob", images[2:])):
        (tmp_path / "people" / name).mkdir(parents=True)
        for image in some:
            shutil.copy(image, tmp_path / "people" / name)
    return tmp_path / "people"


@pytest.fixture
def store(hedged: Hedged, finished_run: Path, people: Path, tmp_path: Path) -> Path:
    table = tmp_path / "table.csv"
    table.write_text(f"id,colour,year\n{people}/ann/0.png,red,2019\n{people}/bob/2.png,blue,\n", encoding="utf-8")
    path = tmp_path / "a.db"
    result = hedged("index", "build", finished_run, path, people, "--folder-labels", "--metadata", table)
    assert result.code == 0, result.err
    assert "stored 3 embeddings" in result.out
    return path


def test_info(hedged: Hedged, store: Path, finished_run: Path) -> None:
    told = json.loads(hedged("index", "info", store, "--check", "--json").out)
    assert (told["rows"], told["labels"], told["metadata"]) == (3, 2, ["colour", "novelty", "year"])
    assert (told["model"], told["kind"], told["dim"]) == (Embedder.load(finished_run).fingerprint(), "gaussian", 2)
    curve = Embedder.load(finished_run).curve
    assert (told["match_model"], told["scale"], told["bias"]) == ("curve", curve.scale.item(), curve.bias.item())
    assert told["checked"] is True
    assert "checked: every row is whole" in hedged("index", "info", store, "--check").out
    unchecked = hedged("index", "info", store).out
    assert "rows" in unchecked
    assert "checked" not in unchecked
    assert "to move it: close what uses it, run `hedged index info` once" in unchecked
    assert f"move {store.name} and {store.name}-wal together" in " ".join(told["to_move_it"].split())


def test_info_imports_no_torch(store: Path) -> None:
    code = (
        "import sys; from hedged.cli import app; "
        f"app(['index', 'info', {str(store)!r}, '--check'], standalone_mode=False); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_search_finds_the_image_itself_or_what_matches_better(
    hedged: Hedged, store: Path, finished_run: Path, people: Path
) -> None:
    result = hedged("search", finished_run, store, people / "ann" / "0.png", "-k", 2, "--json")
    (found,) = json.loads(result.out)
    assert found["image"] == str(people / "ann" / "0.png")
    assert [hit["rank"] for hit in found["hits"]] == [1, 2]
    first, second = found["hits"]
    assert first["match_probability"] >= second["match_probability"]
    for hit in found["hits"]:
        pair = json.loads(hedged("match", finished_run, people / "ann" / "0.png", hit["id"], "--json").out)
        assert hit["match_probability"] == pytest.approx(pair["match_probability"], rel=1e-4)
        assert hit["uncertainty"] == pytest.approx(pair["images"][1]["uncertainty"], rel=1e-4)
        assert found["uncertainty"] == pytest.approx(pair["images"][0]["uncertainty"], rel=1e-4)
    table = hedged("search", finished_run, store, people / "ann" / "0.png").out
    assert "match probability" in table
    assert first["id"] in table


def test_filters(hedged: Hedged, store: Path, finished_run: Path, people: Path) -> None:
    image = people / "ann" / "0.png"
    for where, ids in (
        (["colour=red"], ["ann/0.png"]),
        (["label=ann", "colour=blue"], []),
        (["label=bob"], ["bob/2.png"]),
        (["year=2019"], ["ann/0.png"]),
    ):
        options = [f"--where={text}" for text in where]
        (found,) = json.loads(hedged("search", finished_run, store, image, *options, "--json").out)
        assert [hit["id"] for hit in found["hits"]] == [str(people / name) for name in ids]
    assert "no row passes" in hedged("search", finished_run, store, image, "--where", "label=nobody").out
    before = snapshot(store.parent)
    check_refused(
        hedged("search", finished_run, store, image, "--where", "breed=beagle"),
        "has the key 'breed'", "colour, novelty, year, label, id",
    )  # fmt: skip
    check_refused(hedged("search", finished_run, store, image, "--where", "beagle"), "key=value")
    check_refused(hedged("identify", finished_run, store, image, "--where", "breed=beagle"), "has the key 'breed'")
    assert snapshot(store.parent) == before


def test_add_replace_and_remove(
    hedged: Hedged, store: Path, finished_run: Path, people: Path, images: list[Path]
) -> None:
    assert json.loads(hedged("index", "add", finished_run, store, images[0], "--json").out)["rows"] == 4
    before = store.read_bytes()
    check_refused(hedged("index", "add", finished_run, store, images[0]), "already", "--replace")
    assert store.read_bytes() == before
    assert hedged("index", "add", finished_run, store, images[0], "--replace").code == 0
    told = json.loads(hedged("index", "remove", store, images[0], "nobody", "--json").out)
    assert (told["removed"], told["missing"], told["rows"]) == (1, 1, 3)
    assert "removed 2 rows" in hedged("index", "remove", store, "--where", "label=ann").out
    check_refused(hedged("index", "remove", store), "by their ids or by --where")
    (found,) = json.loads(hedged("search", finished_run, store, images[0], "--json").out)
    assert [hit["label"] for hit in found["hits"]] == ["bob"]


@pytest.mark.parametrize("stage", ["hnsw", "ivf"])
def test_other_first_stages(hedged: Hedged, finished_run: Path, people: Path, tmp_path: Path, stage: str) -> None:
    path = tmp_path / "b.db"
    assert hedged("index", "build", finished_run, path, people, "--first-stage", stage).code == 0
    (found,) = json.loads(hedged("search", finished_run, path, people / "ann" / "0.png", "--json").out)
    assert len(found["hits"]) == 3


@pytest.mark.parametrize("fusion", ["product", "mixture", "neighbours", "borders"])
def test_identify(hedged: Hedged, store: Path, finished_run: Path, people: Path, fusion: str) -> None:
    image = people / "ann" / "0.png"
    (found,) = json.loads(hedged("identify", finished_run, store, image, "--fusion", fusion, "--json").out)
    total = found["none_probability"] + sum(each["probability"] for each in found["best"])
    assert total == pytest.approx(1)
    assert {each["label"]: each["images"] for each in found["best"]} == {"ann": 2, "bob": 1}
    assert "none of these" in hedged("identify", finished_run, store, image, "--none", "0.5").out
    check_refused(hedged("identify", finished_run, store, image, "--none", "1.5"), "(0, 1)")


def test_a_calibration_beside_the_model_is_used(hedged: Hedged, store: Path, run: Path, people: Path) -> None:
    Decider(Embedder.load(run).fingerprint(), Temperature(2.0, 1.0), 0.5, Policy(-50.0, 50.0)).save(run)
    image = people / "ann" / "0.png"
    (found,) = json.loads(hedged("search", run, store, image, "--json").out)
    for hit in found["hits"]:
        pair = json.loads(hedged("match", run, image, hit["id"], "--json").out)
        assert hit["calibrated"]["probability"] == pytest.approx(pair["calibrated"]["probability"], rel=1e-3)
        assert hit["decision"] == pair["decision"] == "abstain"
    assert "abstain" in hedged("search", run, store, image).out
    assert json.loads(hedged("identify", run, store, image, "--json").out)[0]["decision"] == "abstain"
    assert "abstain" in hedged("identify", run, store, image).out


def test_embeddings_of_another_model_are_refused(
    hedged: Hedged, store: Path, run: Path, people: Path, images: list[Path]
) -> None:
    embedder = Embedder.load(run)
    embedder.curve.bias.data += 1
    embedder.save(run)
    before = snapshot(store.parent)
    for verb in (["index", "add"], ["search"], ["identify"]):
        check_refused(hedged(*verb, run, store, images[0]), "two models cannot be compared", embedder.fingerprint())
    assert snapshot(store.parent) == before


@pytest.mark.parametrize("damage", ["truncated", "missing", "other", "unreachable"])
def test_stores_that_cannot_be_used(
    hedged: Hedged, store: Path, finished_run: Path, images: list[Path], damage: str
) -> None:
    where: Path | str = store
    if damage == "truncated":
        store.write_bytes(store.read_bytes()[:20_000])
    elif damage == "missing":
        where = store.with_name("nowhere.db")
    elif damage == "other":
        store.write_text("precious")
    else:
        pytest.importorskip("psycopg")
        where = "postgresql://me:secret@127.0.0.1:1/dogs"
    words = {"missing": "there is no store", "other": "not a store", "unreachable": "cannot be reached"}
    before = snapshot(store.parent)
    for verb in (["index", "add", finished_run, where, images[0]], ["index", "remove", where, "x"],
                 ["index", "info", where], ["search", finished_run, where, images[0]],
                 ["identify", finished_run, where, images[0]]):  # fmt: skip
        result = hedged(*verb)
        check_refused(result, words.get(damage, damage))
        assert "secret" not in result.err
    assert snapshot(store.parent) == before


def test_damage_is_named_and_what_is_whole_is_kept(
    hedged: Hedged, store: Path, finished_run: Path, tmp_path: Path
) -> None:
    new, bob = tmp_path / "new.db", f"{tmp_path}/people/bob/2.png"
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE item SET embedding = zeroblob(length(embedding)) WHERE id = ?", (bob,))
        connection.commit()
    check_refused(
        hedged("index", "info", store, "--check"), f"{bob!r}): its embedding is not what was written", "repair"
    )
    told = hedged("index", "repair", store, new).out
    assert "kept 2 rows; lost 1:" in told
    assert bob in told
    assert json.loads(hedged("index", "info", new, "--check", "--json").out)["rows"] == 2
    check_refused(hedged("index", "repair", store, new), "exists already")
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE store SET header = '{}'")
        connection.commit()
    for verb in (["info", store], ["repair", store, tmp_path / "b.db"]):
        check_refused(hedged("index", *verb), "--model RUN")
    again = hedged("index", "repair", store, tmp_path / "b.db", "--model", finished_run, "--json")
    assert json.loads(again.out)["kept"] == 2


def test_a_store_is_not_built_over_a_file(hedged: Hedged, store: Path, finished_run: Path, images: list[Path]) -> None:
    before = snapshot(store.parent)
    check_refused(hedged("index", "build", finished_run, store, *images), "exists already", "hedged index add")
    assert snapshot(store.parent) == before


def test_images_and_tables_that_cannot_be_read_leave_no_store(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path
) -> None:
    bad, path = tmp_path / "bad.png", tmp_path / "b.db"
    bad.write_text("no image")
    tables = {
        "no-id.csv": "name,colour\nx,red\n", "ragged.csv": "id,colour\nx\n", "other.csv": "id,colour\nx,red\n",
        "twice.csv": f"id\n{images[0]}\n{images[0]}\n", "bad.jsonl": "[1]\n", "key.csv": f"id,a=b\n{images[0]},1\n",
    }  # fmt: skip
    words = (
        "needs a column `id`",
        "row 1 has 1 values",
        "names none",
        "twice",
        "not an object",
        "cannot be a key",
    )
    for name, content in tables.items():
        (tmp_path / name).write_text(content)
    check_refused(hedged("index", "build", finished_run, path, bad), "bad.png", "cannot be read as an image")
    for name, word in zip(tables, words, strict=True):
        check_refused(hedged("index", "build", finished_run, path, *images, "--metadata", tmp_path / name), word)
    check_refused(hedged("index", "build", finished_run, path, *images, "--metadata", tmp_path / "no.csv"), "no.csv")
    assert not path.exists()


def test_files_that_cannot_be_decoded_are_skipped_if_wanted(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path
) -> None:
    bad, path = tmp_path / "bad.png", tmp_path / "b.db"
    bad.write_text("no image")
    build, skip = ("index", "build", finished_run, path, "--folder-labels"), ("--skip-broken", "--json")
    check_refused(hedged(*build, bad, *skip), "bad.png")
    assert not path.exists()
    built = hedged(*build, images[0], bad, images[1], *skip)
    assert json.loads(built.out)["added"] == 2
    assert "skipped" in built.err
    assert "bad.png" in built.err
    added = json.loads(hedged("index", "add", finished_run, path, bad, images[2], *skip).out)
    assert (added["added"], added["rows"]) == (1, 3)
    for verb in ("search", "identify"):
        check_refused(hedged(verb, finished_run, path, bad, images[0]), "bad.png")
        found = json.loads(hedged(verb, finished_run, path, bad, images[0], *skip).out)
        assert [one["image"] for one in found] == [str(images[0])]


def test_metadata_from_jsonl(hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> None:
    table = tmp_path / "table.jsonl"
    table.write_text(json.dumps({"id": str(images[1]), "label": 7, "size": 2.5, "tags": ["a"]}) + "\n")
    path = tmp_path / "b.db"
    assert hedged("index", "build", finished_run, path, *images, "--metadata", table).code == 0
    (found,) = json.loads(
        hedged("search", finished_run, path, images[0], "--where", "size=2.5", "--where", "label=7", "--json").out
    )
    (hit,) = found["hits"]
    known = {"size": 2.5, "tags": ["a"], "novelty": pytest.approx(hit["novelty"], abs=1e-4)}
    assert (hit["id"], hit["metadata"]) == (str(images[1]), known)


def test_nobody_to_identify(hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path) -> None:
    embedder = Embedder.load(finished_run)
    with SqliteStore.create(tmp_path / "b.db", Header.of(embedder)) as store:
        store.add(Rows(["a"], embedder.embed(images[:1]), embedder.fingerprint()))
    check_refused(hedged("identify", finished_run, tmp_path / "b.db", images[0]), "has a label", "--folder-labels")


def test_models_of_vectors_too(hedged: Hedged, tmp_path: Path) -> None:
    run, path, table = tmp_path / "run", tmp_path / "v.db", tmp_path / "table.csv"
    embedder = Embedder.new(Architecture.model_validate({"backbone": "vectors", "shape": (6,), "dim": 3}), seed=0)
    embedder.save(run)
    vectors = tmp_path / "vectors.npy"
    np.save(vectors, np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32))
    table.write_text("id,label\n" + "".join(f"{vectors}:{i},{'ab'[i % 2]}\n" for i in range(5)))
    check_refused(hedged("index", "build", run, path, vectors, "--folder-labels"), "no folders", "--metadata")
    assert hedged("index", "build", run, path, vectors, "--metadata", table).code == 0
    (found,) = json.loads(hedged("search", run, path, f"{vectors}:3", "-k", 2, "--json").out)
    assert (found["image"], len(found["hits"])) == (f"{vectors}:3", 2)
    assert len(json.loads(hedged("identify", run, path, vectors, "--json").out)) == 5
