"""Imports point one way, and `import hedged` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hedged

SOURCE = Path(hedged.__file__).parent

# --8<-- [start:table]
# What each part may import, beside itself. No part imports one that imports it.
SMALL = {
    "_decode", "_files", "_home", "_locks", "_loop_cache", "_reading", "_tensors", "_progress", "_parallel",
    "_compiled", "_section", "_odds", "_precision", "_startup", "_tracing",
}  # fmt: skip
EVERYWHERE = {"errors", "distributions"} | SMALL
MAY_IMPORT: dict[str, set[str]] = {
    "match": set(),
    "metrics": set(),
    "data": set(),
    "losses": {"match"},
    "novelty": set(),
    "models": {"data", "match", "novelty"},
    "training": {"data", "losses", "match", "models", "novelty"},
    "decisions": {"metrics"},
    "runtime": set(),
    "search": {"decisions", "match", "models"},
    "plots": {"metrics"},
    "retrofit": {"match", "metrics", "models", "novelty"},
    "evaluation": {"data", "decisions", "match", "metrics", "models", "plots", "training"},
    "bench": {
        "data",
        "decisions",
        "evaluation",
        "losses",
        "match",
        "metrics",
        "models",
        "novelty",
        "plots",
        "retrofit",
        "search",
        "training",
    },
    "paper": {"data", "decisions", "evaluation", "match", "metrics", "models", "plots", "training"},
    "client": set(),
    "serve": {"decisions", "match", "models", "search", "training"},
    "cli": {
        "bench",
        "data",
        "decisions",
        "evaluation",
        "match",
        "metrics",
        "models",
        "novelty",
        "paper",
        "plots",
        "retrofit",
        "search",
        "serve",
        "training",
    },
}
# --8<-- [end:table]
BELOW: dict[str, set[str]] = {  # among what all may import
    "errors": set(),
    "distributions": {"_tracing", "errors"},
    "_decode": {"_reading", "errors"},
    "_home": {"errors"},
    "_loop_cache": set(),
    "_compiled": {"_home", "_loop_cache"},
    "_parallel": set(),
    "_odds": set(),
    "_tracing": set(),
    "_precision": set(),
    "_startup": set(),
    "_section": set(),
    "_locks": {"errors"},
    "_files": {"_locks", "errors"},
    "_reading": set(),
    "_tensors": {"_files", "_reading"},
    "_progress": set(),
    "__init__": set(),
    "__main__": {"cli"},
}


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
    allowed = BELOW[part] if part in BELOW else MAY_IMPORT[part] | EVERYWHERE
    assert imported_parts(path) - {part, "__version__"} <= allowed


def test_no_two_parts_import_each_other() -> None:
    assert not [(a, b) for a in MAY_IMPORT for b in MAY_IMPORT[a] if a in MAY_IMPORT[b]]


def test_the_top_has_few_doors() -> None:
    modules = [path for path in SOURCE.glob("*.py") if not path.stem.startswith("_")]
    packages = [path for path in SOURCE.iterdir() if (path / "__init__.py").exists() and not path.name.startswith("_")]
    assert {path.stem for path in modules} == {"client", "errors"}
    assert {path.name for path in packages} == {"distributions", *MAY_IMPORT} - {"client"}
    assert len(packages) <= 18


def test_import_hedged_does_not_import_torch() -> None:
    code = "import hedged, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there() -> None:
    for name in hedged.__all__:
        assert getattr(hedged, name).__name__ == name
    with pytest.raises(AttributeError, match="attribute Gausian"):
        _ = hedged.Gausian  # type: ignore[attr-defined]
