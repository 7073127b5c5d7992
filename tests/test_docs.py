"""The documentation keeps its word: examples run, links lead somewhere, tables and the navigation are current."""

from __future__ import annotations

import doctest
import json
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer

from hedged._section import Section
from hedged.cli import app
from hedged.data import FeaturesConfig, ImagesConfig
from hedged.distributions import Distribution, Gaussian, Mixture
from hedged.match import MatchCurve
from hedged.match._closed_form.expansion import certified_error, expand
from hedged.training import Config

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "hedged"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "results").rglob("*.md")])
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Markdown(doctest.DocTestParser):
    """Reads the examples of a Markdown page: the fences around code are none of the expected output."""

    def parse(self, string: str, name: str = "<string>") -> list[str | doctest.Example]:
        return super().parse(re.sub(r"^```.*$", "", string, flags=re.MULTILINE), name)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=name)
def test_examples_run(page: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags, parser=Markdown(), encoding="utf-8")
    assert result.failed == 0


def test_the_readmes_retrofit_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if "Retrofit" in block)
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 5)
    x = random.normal(size=(40, 16))[y] + 0.5 * random.normal(size=(200, 16))
    exec(block, {"X": x, "y": y, "A": x[:3], "B": x[:4]})
    assert (tmp_path / "runs" / "head").is_dir()


@pytest.mark.parametrize("kind", [Gaussian, Mixture])
def test_the_readmes_training_loop_runs(kind: type[Distribution]) -> None:
    """With either head that it names; tests/losses/test_schedule.py has the same loop on images."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (first,) = (block for block in blocks if "HedgedLoss" in block)
    if kind is Mixture:
        (mixture,) = re.findall(r"# or (MixtureHead\(.*\))", first)
        first = first.replace("GaussianHead(features=32, dim=2)", mixture).replace("GaussianHead,", "MixtureHead,")
    names: dict[str, object] = {}
    exec(first, names)
    assert isinstance(names["z"], kind)


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Where the links of a page lead within the project: a file, and an anchor or nothing."""
    for target in LINK.findall(prose(page)):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield (page.parent / file).resolve() if file else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{name(page)} links to {target}"
        assert not anchor or anchor in anchors(target), f"{name(page)} links to {name(target)}#{anchor}"


def navigation() -> list[Path]:
    """The pages of the documentation site, in the order of its navigation; some lie outside docs/."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    names = re.findall(r"^ +- (?:[\w ]+: )?([\w/-]+\.md)$", text, re.MULTILINE)
    return [(DOCS if (DOCS / name).exists() else ROOT) / name for name in names]


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    top = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    outside = [*(ROOT / "results").rglob("*.md"), *top]
    assert sorted(navigation()) == sorted([*DOCS.rglob("*.md"), *outside])


def test_the_first_page_lists_the_others_as_the_navigation_does() -> None:
    home, *others = navigation()
    assert home == DOCS / "README.md"
    assert list(dict.fromkeys(page for page, _ in links(home) if page.suffix == ".md")) == others


def test_every_package_has_an_api_page() -> None:
    public = {path.stem for path in SOURCE.glob("[a-z]*") if path.suffix == ".py" or (path / "__init__.py").exists()}
    pages = {
        page.stem: page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md") if page.stem != "README"
    }
    assert set(pages) == public - {"bench", "cli", "paper", "plots"}
    for package, page in pages.items():
        assert f"::: hedged.{package}\n" in page


def test_the_design_page_includes_the_import_table() -> None:
    assert '--8<-- "tests/test_imports.py:table"' in (DOCS / "design.md").read_text(encoding="utf-8")
    table = (ROOT / "tests" / "test_imports.py").read_text(encoding="utf-8")
    assert 0 < table.index("[start:table]") < table.index("MAY_IMPORT") < table.index("[end:table]")


def test_source_files_that_pages_name_are_there() -> None:
    for page in PAGES:
        for file in re.findall(r"`((?:src|tests|tools|docs)/[\w./-]+\.\w+)`", prose(page)):
            assert (ROOT / file).exists(), f"{name(page)} names {file}"


def test_names_that_pages_mention_can_be_imported() -> None:
    for page in PAGES:
        for dotted in re.findall(r"`(hedged(?:\.[A-Za-z_]\w*)+)", page.read_text(encoding="utf-8")):
            assert pydoc.locate(dotted) is not None, f"{name(page)} mentions {dotted}"


def verbs(command: Any, path: str = "hedged") -> Iterator[tuple[str, set[str]]]:
    """Every verb of the command line, as it is typed, and its options."""
    for part, child in getattr(command, "commands", {}).items():
        yield from verbs(child, f"{path} {part}")
    if not hasattr(command, "commands"):
        yield path, {option for parameter in command.params for option in parameter.opts if option.startswith("-")}


def test_the_page_of_the_command_line_has_every_option_and_no_other() -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (hedged.*?)\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL))
    known: dict[str, set[str]] = {title: set() for title in sections}
    for path, options in verbs(typer.main.get_command(app)):
        known[path if path in sections else path.rpartition(" ")[0]] |= options
    for title, body in sections.items():
        shown = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*(?![\w-])", re.sub(r"pip install \S+", "", body)))
        assert known[title] - {"--help", "-h", "--json"} <= shown, title
        assert shown <= known[title] | {"--json"}, title


def test_table_of_certified_errors_is_current() -> None:
    text = (DOCS / "closed-form.md").read_text(encoding="utf-8")
    for b in range(-4, 13):
        weights = expand(torch.tensor(float(b))).weights
        total = float(f"{weights.abs().sum().item():.2g}")
        bounds = f"{certified_error(float(b)):.1e} | {MatchCurve(bias=float(b)).error_bound():.1e}"
        row = f"| {b} | {bounds} | {len(weights)} | {total:,g} |"
        assert row in text.splitlines(), f"the row of b = {b} is now {row}"


def test_table_of_config_keys_is_current() -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+\.\w+)` \| `(.+?)` \|", text, re.MULTILINE))
    sections = Config().model_dump(mode="json")
    keys = {f"{section}.{key}": json.dumps(v) for section, content in sections.items() for key, v in content.items()}
    assert told == keys


@pytest.mark.parametrize(
    ("page", "config", "required"),
    [
        ("images.md", ImagesConfig(source="images", path="album"), ["path"]),
        ("features.md", FeaturesConfig(source="features", path="vectors", size=1), ["path", "size"]),
    ],
)
def test_tables_of_the_keys_of_data_are_current(page: str, config: Section, required: list[str]) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| `?(.+?)`? \|", text.partition("## Every key")[2], re.MULTILINE))
    keys = {key: json.dumps(v) for key, v in config.model_dump().items()}
    assert told == keys | dict.fromkeys(required, "none")
