"""How the documentation site reads the source: what a package re-exports is public, and examples are code."""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^[ \t]*>>> .*\n?(?:[ \t]*\S.*\n?)*", re.MULTILINE)


class ReExports(griffe.Extension):
    """Makes `from a import x as x` public, as type checkers do."""

    def on_alias_instance(self, *, node: ast.AST | griffe.ObjectNode, alias: griffe.Alias, **kwargs: Any) -> None:
        """Mark one imported name."""
        if isinstance(node, ast.ImportFrom):
            alias.public = any(alias.name == name.name == name.asname for name in node.names)


class FencedExamples(griffe.Extension):
    """Puts each run of `>>>` lines and what they print into a fence: to Markdown `>` begins a quotation."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class or function."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    margin = " " * (len(example[0]) - len(example[0].lstrip()))
    return f"{margin}```pycon\n{example[0].rstrip()}\n{margin}```\n"
