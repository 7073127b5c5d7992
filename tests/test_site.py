"""The documentation site as `make docs` leaves it: complete, without a network, without a broken formula or example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
LOADED = re.compile(r'<(?:script|img|iframe)\b[^>]* src="?(?:https?:)?//|<link\b[^>]* href="?(?:https?:)?//')


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    assert SITE.exists(), "build the site first: make docs"
    return {path.relative_to(SITE).as_posix(): path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}


def test_no_page_loads_anything_from_elsewhere(pages: dict[str, str]) -> None:
    assert [name for name, page in pages.items() if LOADED.search(page)] == []


def test_every_formula_is_drawn(pages: dict[str, str]) -> None:
    assert "<math" in pages["closed-form.html"]
    for name, page in pages.items():
        assert "arithmatex" not in page, name
        text = re.sub(r"<(pre|code|script|annotation)\b.*?</\1>", "", page, flags=re.DOTALL)
        assert not re.search(r"\$[^$\n]{1,80}\$|\\(frac|mathbb|sigma|lVert)", text), name


def test_examples_are_code(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        assert "<blockquote>\n<blockquote>" not in page, name


@pytest.mark.parametrize("source", sorted((ROOT / "docs" / "api").glob("*.md")), ids=lambda path: path.stem)
def test_every_public_name_of_a_package_is_on_its_page(source: Path, pages: dict[str, str]) -> None:
    for package in re.findall(r"^::: (hedged\.\w+)$", source.read_text(encoding="utf-8"), re.MULTILINE):
        lists = (ROOT / "src" / package.replace(".", "/")).glob("__init__.py*")  # of lazy imports: the stub
        text = "".join(path.read_text(encoding="utf-8") for path in lists)
        names = re.findall(r"import (\w+) as \1\b", text)
        page = pages[f"api/{source.stem}.html"]
        documented = set(re.findall(rf'id="{package}\.([\w.]+)"', page))
        assert [name for name in names if not documented & {name, f"{name}.{name}"}] == []  # of a module of that name


def test_the_import_table_is_shown(pages: dict[str, str]) -> None:
    assert "MAY_IMPORT" in pages["design.html"]
