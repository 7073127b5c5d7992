"""A bug of hedged's own surfaces as a bug, with its traceback: nothing catches what it does not know."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.commands import Hedged

SOURCES = Path(__file__).parents[2] / "src"
BLANKET = {"Exception", "BaseException"}
SERVICE = "hedged/serve/"  # one bug must not end it for all: it logs the traceback, and answers 500
PLACES = {  # where a bug is put, and a command that comes there
    "hedged.cli.match.load_embedder": "match",
    "hedged.models.embedder.Embedder.embed_with_novelty": "match",
    "hedged.data.inputs.upright": "match",
    "hedged.match.curve.MatchCurve.logit": "match",
    "hedged.search.engines.sqlite.SqliteStore.state": "search",
    "hedged.search.engines._faiss.FaissIndex.sync": "search",
    "hedged.search.engines._index_file._checksum": "search",
    "hedged.search.engines._index_file._plan": "search",
    "hedged.search.engines._first_stage.FirstStage.read": "search a graph",
    "hedged.search.engines._sql.description_fault": "search",
    "hedged.search.repair._rows": "repair",
    "hedged.decisions.decider.Decider.describe": "calibrate",
}
BUGS = (TypeError, KeyError, ValueError, AttributeError, ZeroDivisionError, EOFError)


def blankets(tree: ast.AST, may_log: bool = False) -> Iterator[int]:
    """The lines of handlers that catch everything, or suppress it, and neither raise it again nor, if that will do,
    begin with its traceback in the log.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = {one.id for one in ast.walk(node.type) if isinstance(one, ast.Name)} if node.type else BLANKET
            first, last = node.body[0], node.body[-1]
            raised = isinstance(last, ast.Raise) and last.exc is None
            logged = may_log and ast.unparse(first).startswith("LOGGER.exception(")
            if caught & BLANKET and not raised and not logged:
                yield node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            yield from (one.lineno for one in node.args if ast.unparse(one) in BLANKET)


def test_nothing_catches_everything() -> None:
    found = {
        f"{path.relative_to(SOURCES)}:{line}"
        for path in sorted(SOURCES.rglob("*.py"))
        for line in blankets(ast.parse(path.read_text(encoding="utf-8")), SERVICE in path.as_posix())
    }
    assert not found


@pytest.mark.parametrize(
    "program",
    [
        "try: f()\nexcept: pass",
        "try: f()\nexcept Exception: pass",
        "try: f()\nexcept (OSError, Exception) as error: raise KeyError from error",
        "try: f()\nexcept BaseException: g()",
        "try: f()\nexcept Exception: LOGGER.exception('a bug')",
        "with contextlib.suppress(Exception): f()",
    ],
)
def test_what_catches_everything_is_found(program: str) -> None:
    assert list(blankets(ast.parse(program)))
    assert not list(blankets(ast.parse("try: f()\nexcept Exception:\n    g()\n    raise")))


@pytest.mark.parametrize(
    ("place", "bug"),
    [(next(iter(PLACES)), bug) for bug in BUGS] + [(place, bug) for place in PLACES for bug in (KeyError, ValueError)],
)
def test_a_bug_is_shown_with_its_traceback(
    hedged: Hedged,
    run: Path,
    images: list[Path],
    tmp_path: Path,
    bug: type[Exception],
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = tmp_path / "a.db"
    commands = {
        "match": ("match", run, *images[:2]),
        "search": ("search", run, store, images[0]),
        "search a graph": ("search", run, store, images[0]),
        "repair": ("index", "repair", store, tmp_path / "new.db"),
        "calibrate": ("calibrate", run),
    }
    if PLACES[place] in ("search", "search a graph", "repair"):
        stage = "hnsw" if PLACES[place] == "search a graph" else "exact"
        assert hedged("index", "build", run, store, *images[:2], "--first-stage", stage).code == 0

    def broken(*_: object, **__: object) -> None:
        raise bug("a bug")

    monkeypatch.setattr(place, broken)
    with pytest.raises(RuntimeError if bug is EOFError else bug, match="a bug"):
        hedged(*commands[PLACES[place]])
