"""How the documentation site reads the source.

What a package re-exports is public, hooks of Python are left out; examples are code; fields are parameters; a method
that overrides another has its parameters, and need not say them again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import griffe

HOOKS = ("__post_init__", "__init_subclass__", "__pydantic_init_subclass__")  # called by Python, never by a user
EXAMPLE = re.compile(r"^[ \t]*>>> .*\n?(?:[ \t]*\S.*\n?)*", re.MULTILINE)


class ReExports(griffe.Extension):
    """Makes `from a import x as x` public, as type checkers do."""

    def on_alias_instance(self, *, node: ast.AST | griffe.ObjectNode, alias: griffe.Alias, **kwargs: Any) -> None:
        """Mark one imported name."""
        if isinstance(node, ast.ImportFrom):
            alias.public = any(alias.name == name.name == name.asname for name in node.names)


class Hooks(griffe.Extension):
    """Leaves out what Python calls when classes and objects are made, by its docstring: what has none is not shown."""

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Silence one method."""
        if func.name in HOOKS:
            func.docstring = None


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
    """Gives pydantic models and named tuples the constructors that are made for them: each field is an argument."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Add the constructors once every base class is known."""
        for cls in _classes(pkg):
            family = [cls, *cls.mro()]
            bases = [str(base).rpartition(".")[2] for each in family for base in each.bases]
            if "__init__" not in cls.members and ("BaseModel" in bases or "NamedTuple" in bases):
                fields = {name: field for each in reversed(family) for name, field in each.attributes.items()}
                kind = griffe.ParameterKind
                kind_of_all = kind.keyword_only if "BaseModel" in bases else kind.positional_or_keyword
                made = [_parameter(field, kind_of_all) for field in fields.values() if _is_field(field)]
                cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*made)))


def _is_field(attribute: griffe.Attribute) -> bool:
    return attribute.annotation is not None and "instance-attribute" in attribute.labels and attribute.name[0] != "_"


def _parameter(field: griffe.Attribute, kind: griffe.ParameterKind) -> griffe.Parameter:
    return griffe.Parameter(field.name, annotation=field.annotation, default=field.value, kind=kind)


class InheritedParameters(griffe.Extension):
    """Adds to a docstring the parameters that it leaves to the base classes: in the source each is said once."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Add them once every base class is known."""
        for cls in _classes(pkg):
            _inherit_lines(cls, cls.parameters, cls.mro())
            for name, method in cls.functions.items():
                _inherit_lines(method, method.parameters, [base[name] for base in cls.mro() if name in base.functions])


def _inherit_lines(obj: griffe.Object, parameters: griffe.Parameters, bases: list[Any]) -> None:
    if obj.docstring is None:
        return
    own = said_parameters(obj)
    inherited = {name: line for base in reversed(bases) for name, line in said_parameters(base).items()}
    lines = [
        f"    {parameter.name}: " + inherited[parameter.name].replace("\n", "\n        ")
        for parameter in parameters
        if parameter.name in inherited and parameter.name not in own
    ]
    if lines:
        before, _, own_lines = obj.docstring.value.partition("Args:\n")
        obj.docstring.value = f"{before.rstrip()}\n\nArgs:\n" + "\n".join(lines) + f"\n{own_lines}"


def said_parameters(obj: griffe.Object) -> dict[str, str]:
    """What a docstring says of each parameter, by name."""
    if obj.docstring is None:
        return {}
    sections = obj.docstring.parse("google", warnings=False)
    parameters = griffe.DocstringSectionKind.parameters
    return {each.name: each.description for part in sections if part.kind is parameters for each in part.value}


def _classes(module: griffe.Module) -> Iterator[griffe.Class]:
    for member in module.members.values():
        if isinstance(member, griffe.Class):
            yield member
        elif isinstance(member, griffe.Module):
            yield from _classes(member)
