"""Write docs/api/ from the signatures and docstrings of the source.

    python tools/api_pages.py            write the pages
    python tools/api_pages.py --check    fail if the committed pages are not what it would write

The source is parsed, never imported: signatures and fields stand on the pages as they stand in the code, comments
included, and nothing has to be installed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hedged"
OUTPUT = ROOT / "docs" / "api"

# A page, and the modules it is about, in the order of reading.
PAGES: dict[str, tuple[str, ...]] = {
    "distributions": ("distributions",),
    "match": ("curve", "match", "ranking", "expansion"),
    "losses": ("losses",),
    "networks": ("heads", "backbones", "architecture"),
    "embedder": ("embedder", "views"),
    "data": ("data",),
    "training": ("training", "training.config", "training.data_config"),
    "evaluation": ("evaluation",),
    "decisions": ("decisions",),
    "metrics": ("metrics",),
    "search": ("search",),
    "errors": ("errors",),
}
HEADER = "<!-- Written by tools/api_pages.py from the docstrings: change those, then run it. -->\n"

Definition = ast.ClassDef | ast.FunctionDef


@dataclass(frozen=True)
class Module:
    """A module of the source: its text and what it defines."""

    name: str
    text: str

    @classmethod
    def read(cls, name: str) -> Module:
        path = SOURCE.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        return cls(name, path.read_text(encoding="utf-8"))

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def source(self, node: ast.stmt) -> str:
        """The lines of a statement as they are, comments at their ends included, moved to the left margin."""
        lines = self.text.splitlines()[node.lineno - 1 : node.end_lineno]
        return "\n".join(line.removeprefix(" " * node.col_offset) for line in lines)


@dataclass(frozen=True)
class Name:
    """A public name, and the module where it is defined."""

    module: Module
    node: ast.stmt
    name: str


def public_names(module: Module) -> Iterator[Name]:
    """What a package exports as `X as X`, or what a module defines without an underscore."""
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hedged."):
            home = Module.read(node.module.removeprefix("hedged."))
            for alias in node.names:
                if alias.asname == alias.name:
                    yield find(home, alias.name)
        elif isinstance(node, Definition) and not node.name.startswith("_"):
            yield Name(module, node, node.name)


def find(module: Module, name: str) -> Name:
    """The definition of a name in its module, or in the one that it is exported from; of an alias, the assignment."""
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and name in [alias.asname for alias in node.names]:
            return find(Module.read(node.module.removeprefix("hedged.")), name)
        if isinstance(node, Definition) and node.name == name:
            return Name(module, node, name)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return Name(module, node, name)
    raise SystemExit(f"hedged.{module.name} does not define {name}")


def entry(found: Name) -> Iterator[str]:
    """The lines about one public name."""
    yield f"### {found.name}\n"
    if isinstance(found.node, ast.ClassDef):
        yield from _class(found.module, found.node)
    elif isinstance(found.node, ast.FunctionDef):
        yield _code(_signature(found.module, found.node))
        yield from _docstring(found.node)
    else:
        yield _code(found.module.source(found.node))


def _class(module: Module, node: ast.ClassDef) -> Iterator[str]:
    yield _code("\n".join(_outline(module, node)))
    yield from _docstring(node)
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or not ast.get_docstring(method):
            continue
        if method.name.startswith("_") and method.name != "__getitem__":
            continue
        yield f"#### {node.name}.{method.name}\n"
        yield _code(_signature(module, method))
        yield from _docstring(method)


def _outline(module: Module, node: ast.ClassDef) -> Iterator[str]:
    """The head of a class, its public fields and how it is made."""
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    head = f"class {node.name}({bases}):" if bases else f"class {node.name}:"
    members = [f"    {module.source(item)}" for item in node.body if _is_field(item)]
    made = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
    members += ["\n".join(f"    {line}" for line in _signature(module, item).splitlines()) for item in made]
    yield from [head, *members] if members else [f"{head} ..."]


def _is_field(item: ast.stmt) -> bool:
    return isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_")


def _signature(module: Module, node: ast.FunctionDef) -> str:
    """From the decorators that matter to the colon."""
    wanted = [d for d in map(ast.unparse, node.decorator_list) if d in ("property", "cached_property", "classmethod")]
    head = module.source(node).splitlines()[: max(node.body[0].lineno - node.lineno, 1)]
    head[-1] = head[-1].rstrip().removesuffix(" ...")
    return "\n".join([*(f"@{decorator}" for decorator in wanted), *head])


def _docstring(node: Definition | ast.Module) -> Iterator[str]:
    """Paragraphs as Markdown, examples as code."""
    for block in (ast.get_docstring(node) or "").split("\n\n"):
        if block.lstrip().startswith(">>>"):
            yield _code(block, language="pycon")
        elif block:
            yield f"{_prose(block)}\n"


def _prose(text: str) -> str:
    """Escape what Markdown would take for itself, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"(?<!^)(?<!\n)([*<$])", r"\\\1", part) for part in parts)


def _code(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}\n```\n"


def page(title: str, modules: tuple[str, ...]) -> str:
    """One page: each module's own docstring, then its public names."""
    lines = [HEADER, f"# API: {title}\n", "[All pages](README.md)\n"]
    told: set[str] = set()
    for name in modules:
        module = Module.read(name)
        lines += [f"## hedged.{name}\n", *_docstring(module.tree)]
        for found in public_names(module):
            if found.name not in told:  # a package may have exported it above
                told.add(found.name)
                lines += entry(found)
    return "\n".join(lines)


def contents() -> str:
    """The first page: every name of `hedged` itself with its first line, then the pages."""
    module = Module.read("__init__")
    homes = {name.name: title for title, names in PAGES.items() for m in names for name in public_names(Module.read(m))}
    lines = [HEADER, "# API\n", "Names that `from hedged import …` finds:\n", "| Name | What it is |", "|---|---|"]
    for found in sorted(_typed_names(module), key=lambda found: found.name.lower()):
        assert isinstance(found.node, Definition)
        summary = _prose((ast.get_docstring(found.node) or "").split("\n")[0]).replace("|", "\\|")
        lines.append(f"| [`{found.name}`]({homes[found.name]}.md#{found.name.lower()}) | {summary} |")
    lines += ["", "Pages, by module:\n"]
    lines += [f"- [{t}]({t}.md): {', '.join(f'`hedged.{name}`' for name in names)}" for t, names in PAGES.items()]
    return "\n".join(lines) + "\n"


def _typed_names(module: Module) -> Iterator[Name]:
    """The names in `if TYPE_CHECKING:`, which are those found at run time (a test of the package sees to that)."""
    for node in module.tree.body:
        if isinstance(node, ast.If):
            yield from public_names(Module(module.name, "\n".join(ast.unparse(item) for item in node.body)))


def pages() -> dict[str, str]:
    """All pages by file name."""
    written = {f"{title}.md": page(title, modules) for title, modules in PAGES.items()}
    return {"README.md": contents()} | written


def stale() -> list[str]:
    """File names whose committed text is not what would be written, and pages that should not be there."""
    fresh = pages()
    committed = {path.name: path.read_text(encoding="utf-8") for path in OUTPUT.glob("*.md")}
    return sorted(name for name in fresh.keys() | committed.keys() if fresh.get(name) != committed.get(name))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write docs/api/ from the docstrings.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    if parser.parse_args().check:
        if names := stale():
            sys.exit(f"out of date in docs/api: {', '.join(names)}; run python tools/api_pages.py")
        return
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name in stale():
        (OUTPUT / name).unlink(missing_ok=True)
    for name, text in pages().items():
        (OUTPUT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
