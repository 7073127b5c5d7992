"""Verbs that write stores, or about them."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, final

from faults.verb import Verb, Words, hedged, train_tiny, write_images

from hedged.search import SqliteStore


@final
class IndexAdd(Verb):
    """Rows added to a store that has some."""

    name = "index add"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        write_images(folder / "old", 5)
        write_images(folder / "new", 4, first=5)
        assert hedged("index", "build", folder / "run", folder / "a.db", folder / "old", "--first-stage", "hnsw") == 0

    def command(self, folder: Path) -> Words:
        return ["index", "add", str(folder / "run"), str(folder / "a.db"), str(folder / "new")]

    def command_again(self, folder: Path) -> Words:
        return [*self.command(folder), "--replace"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        old, now = rows_of(before / "a.db"), rows_of(folder / "a.db")
        assert old.items() <= now.items()
        assert len(now) in (5, 9)

    def result(self, folder: Path) -> Any:
        return rows_of(folder / "a.db")


@final
class IndexRemove(Verb):
    """Rows removed from a store."""

    name = "index remove"

    def make_ready(self, folder: Path) -> None:
        IndexAdd().make_ready(folder)

    def command(self, folder: Path) -> Words:
        return ["index", "remove", str(folder / "a.db"), str(folder / "old" / "1.png")]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        old, now = rows_of(before / "a.db"), rows_of(folder / "a.db")
        assert now.items() <= old.items()
        assert set(old) - set(now) <= {"1.png"}

    def result(self, folder: Path) -> Any:
        return rows_of(folder / "a.db")


@final
class IndexBuild(Verb):
    """A new store."""

    name = "index build"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        write_images(folder / "old", 5)

    def command(self, folder: Path) -> Words:
        return ["index", "build", str(folder / "run"), str(folder / "a.db"), str(folder / "old")]

    def command_again(self, folder: Path) -> Words:
        if not (folder / "a.db").exists():
            return self.command(folder)
        return ["index", "add", str(folder / "run"), str(folder / "a.db"), str(folder / "old"), "--replace"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        if (folder / "a.db").exists():
            assert len(rows_of(folder / "a.db")) in (0, 5)

    def result(self, folder: Path) -> Any:
        return rows_of(folder / "a.db")


def rows_of(path: Path) -> dict[str, bytes]:
    """The embeddings of a store that was found whole, by the names of their images."""
    with SqliteStore(path) as store:
        store.verify()
        return {
            Path(row.id).name: packed.tobytes()
            for batch in store.batches()
            for row, packed in zip(batch.described, batch.packed, strict=True)
        }


@final
class IndexRepair(Verb):
    """What is whole of a store with a broken row, in a new one."""

    name = "index repair"

    def make_ready(self, folder: Path) -> None:
        IndexAdd().make_ready(folder)
        with closing(sqlite3.connect(folder / "a.db")) as connection:
            connection.execute("UPDATE item SET label = 'another' WHERE key = 2")
            connection.commit()

    def command(self, folder: Path) -> Words:
        return ["index", "repair", str(folder / "a.db"), str(folder / "new.db")]

    def command_again(self, folder: Path) -> Words:
        return ["index", "info", str(folder / "new.db")] if (folder / "new.db").exists() else self.command(folder)

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert (before / "a.db").read_bytes() == (folder / "a.db").read_bytes()
        if (folder / "new.db").exists():
            assert len(rows_of(folder / "new.db")) == 4

    def result(self, folder: Path) -> Any:
        return rows_of(folder / "new.db")


@final
class IndexAudit(Verb):
    """A page of findings over an older page."""

    name = "index audit"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        for number in range(5):
            write_images(folder / "old" / f"{number}", 4, first=4 * number)
        store = folder / "a.db"
        assert hedged("index", "build", folder / "run", store, folder / "old", "--folder-labels") == 0
        (folder / "page.html").write_text("<html>older</html>", encoding="utf-8")

    def command(self, folder: Path) -> Words:
        return ["index", "audit", str(folder / "a.db"), "--page", str(folder / "page.html"), "--force"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert rows_of(before / "a.db") == rows_of(folder / "a.db")
        assert (folder / "page.html").read_text(encoding="utf-8").strip().endswith("</html>")

    def result(self, folder: Path) -> Any:
        return (folder / "page.html").read_bytes()


@final
class Cluster(Verb):
    """A table of clusters over an older one."""

    name = "cluster"

    def make_ready(self, folder: Path) -> None:
        IndexAdd().make_ready(folder)
        (folder / "rows.csv").write_text("id,cluster\nolder,0\n", encoding="utf-8")

    def command(self, folder: Path) -> Words:
        return ["cluster", str(folder / "a.db"), "--out", str(folder / "rows.csv"), "--force"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert rows_of(before / "a.db") == rows_of(folder / "a.db")
        with (folder / "rows.csv").open(encoding="utf-8", newline="") as file:
            assert len(list(csv.DictReader(file))) in (1, 5)

    def result(self, folder: Path) -> Any:
        return (folder / "rows.csv").read_bytes()


@final
class Search(Verb):
    """A search, which keeps its index beside the store if it can."""

    name = "search"

    def make_ready(self, folder: Path) -> None:
        IndexAdd().make_ready(folder)
        (folder / "a.db.index").unlink()

    def command(self, folder: Path) -> Words:
        image = folder / "new" / "5.png"
        return ["search", str(folder / "run"), str(folder / "a.db"), str(image), "-k", "2"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert rows_of(before / "a.db") == rows_of(folder / "a.db")

    def result(self, folder: Path) -> Any:
        return rows_of(folder / "a.db")
