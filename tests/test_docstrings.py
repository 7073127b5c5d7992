"""What the API pages say: every public name says what it is, and each of its parameters in a line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
import pytest

from hedged.distributions import Gaussian

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
BY_TORCH = ("extra_repr",)  # known from nn.Module, which the pages do not have
Documented = Any  # an object of griffe, or an alias of one


@pytest.fixture(scope="module")
def package() -> Documented:
    """The source as the site reads it."""
    extensions = griffe.load_extensions(str(ROOT / "tools" / "site_docstrings.py"))
    return griffe.load("hedged", search_paths=[ROOT / "src"], extensions=extensions)


def of_page(page: Path, package: Documented) -> Iterator[Documented]:
    """The public names of a page, with the methods of its classes."""
    for name in re.findall(r"^::: hedged\.([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        found = package[name]
        for each in found.members.values() if found.is_module else [found]:
            if each.is_public and not each.is_module:
                yield each
                if each.is_class:
                    yield from (method for method in each.functions.values() if method.is_public)


def overrides(obj: Documented) -> bool:
    """Whether it only does what a base class says."""
    return any(obj.name in base.members for base in obj.parent.mro()) if obj.parent and obj.parent.is_class else False


def said(obj: Documented) -> set[str]:
    """The parameters that its docstring has a line for."""
    parameters = griffe.DocstringSectionKind.parameters
    sections = obj.docstring.parse("google", warnings=False) if obj.docstring else []
    return {each.name for part in sections if part.kind is parameters for each in part.value}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_public_name_says_what_it_is_and_takes(page: Path, package: Documented) -> None:
    gaps = []
    for obj in of_page(page, package):
        if obj.name == "__init__" or obj.name in BY_TORCH:
            continue
        if obj.docstring is None:
            gaps += [] if overrides(obj) or obj.name.startswith("__") or is_type_variable(obj) else [obj.path]
        elif not obj.is_attribute:
            taken = {parameter.name for parameter in obj.parameters} - {"self", "cls"}
            gaps += [f"{obj.path}({name})" for name in sorted(taken - said(obj))]
    assert gaps == []


def is_type_variable(obj: Documented) -> bool:
    return obj.is_attribute and str(obj.value).startswith("TypeVar(")


def test_a_method_has_the_parameters_of_the_one_it_overrides(package: Documented) -> None:
    assert inspect.getdoc(Gaussian.kl) is not None
    assert "Args:" not in str(inspect.getdoc(Gaussian.kl))
    assert said(package["distributions.Gaussian.kl"]) == said(package["distributions.Distribution.kl"]) != set()


def test_hooks_of_python_are_left_out(package: Documented) -> None:
    assert package["data.photos.augmentation.Augmentation.__post_init__"].docstring is None


def test_fields_are_parameters_and_properties_are_not(package: Documented) -> None:
    assert [each.name for each in package["match.Matches"].parameters][-2:] == ["logits", "items"]
    keys = [each.name for each in package["data.NDigitConfig"].parameters]
    assert {"source", "seed"} <= set(keys)
    assert not {"shape", "default_backbone", "model_config"} & set(keys)
