"""How the documentation site reads the source: what a package re-exports is public, and examples are code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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


class FieldsAsParameters(griffe.Extension):
    """Gives pydantic models the constructor that pydantic makes: each field is a keyword argument."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Add the constructors once every base class is known."""
        for cls in _classes(pkg):
            family = [cls, *cls.mro()]
            made_by_pydantic = any(str(base).endswith("BaseModel") for each in family for base in each.bases)
            if made_by_pydantic and "__init__" not in cls.members:
                fields = {name: field for each in reversed(family) for name, field in each.attributes.items()}
                parameters = griffe.Parameters(*(_keyword(field) for field in fields.values() if _is_field(field)))
                cls.set_member("__init__", griffe.Function("__init__", parameters=parameters))


def _is_field(attribute: griffe.Attribute) -> bool:
    annotation = str(attribute.annotation or "ClassVar")
    return not attribute.name.startswith("_") and "ClassVar" not in annotation


def _keyword(field: griffe.Attribute) -> griffe.Parameter:
    kind = griffe.ParameterKind.keyword_only
    return griffe.Parameter(field.name, annotation=field.annotation, default=field.value, kind=kind)


def _classes(module: griffe.Module) -> Iterator[griffe.Class]:
    for member in module.members.values():
        if isinstance(member, griffe.Class):
            yield member
        elif isinstance(member, griffe.Module):
            yield from _classes(member)
