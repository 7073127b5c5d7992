"""Imports point one way, and `import hedged` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hedged

SOURCE = Path(hedged.__file__).parent

# What each part may import, besides errors, files and progress; "all" for the outermost.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "files": set(),
    "progress": set(),
    "cores": set(),
    "distributions": set(),
    "expansion": set(),
    "compiled": set(),
    "leaves": set(),
    "threads": set(),
    "kernels": {"compiled", "threads"},
    "curve": {"expansion"},
    "units": {"curve", "distributions"},
    "matrix": {"compiled", "curve", "distributions", "expansion", "leaves", "threads", "units"},
    "match": {"distributions", "curve", "expansion", "kernels", "matrix", "units"},
    "ranking": {"compiled", "curve", "distributions", "expansion", "leaves", "match", "threads", "units"},
    "pairwise": {"compiled", "curve", "distributions", "expansion", "threads", "units"},
    "losses": {"distributions", "curve", "expansion", "match", "pairwise"},
    "heads": {"distributions"},
    "views": {"distributions"},
    "backbones": {"compiled", "threads"},
    "metrics": set(),
    "data": {"compiled", "cores", "threads"},
    "architecture": {"backbones", "heads"},
    "embedder": {"architecture", "curve", "data", "distributions", "heads", "match", "views"},
    "search": {"compiled", "curve", "distributions", "embedder", "expansion", "match", "threads", "units"},
    "evaluation": {"curve", "data", "distributions", "embedder", "match", "metrics", "ranking"},
    "decisions": {"data", "distributions", "embedder", "evaluation", "match", "metrics"},
    "training": {"architecture", "backbones", "curve", "data", "distributions", "embedder", "losses", "match"},
}
EVERYWHERE = {"errors", "files", "progress"}
OUTERMOST = {"__init__", "benchmarks", "calibrating", "cli", "demo", "paper", "report"}


def imported_parts(path: Path) -> set[str]:
    """The parts of hedged that a module imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "hedged":
            names = [node.module.split(".")[1]] if "." in node.module else [alias.name for alias in node.names]
            found.update(names)
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in OUTERMOST:
        return
    assert part in MAY_IMPORT, f"say in MAY_IMPORT what {part} may import"
    assert imported_parts(path) <= MAY_IMPORT[part] | EVERYWHERE | {part}


def test_import_hedged_does_not_import_torch() -> None:
    code = "import hedged, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there_and_known_to_type_checkers() -> None:
    for name in hedged.__all__:
        assert getattr(hedged, name).__name__ == name
    typed = {
        alias.asname
        for node in ast.walk(ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert typed == set(hedged.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Gausian'"):
        _ = hedged.Gausian
