"""Hooks of the documentation site: pages from outside docs/, links between them, and formulas as MathML.

`results/`, `CHANGELOG.md`, `CONTRIBUTING.md` and `SECURITY.md` become pages of the site. Links are written for a reader
of the repository, so they are rewritten for the site; a link to a source file becomes its name.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from posixpath import normpath, relpath

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = ("results/**/*.md", "results/**/*.png", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

LOGARITHM = re.compile(r"(<mi>log</mi>)(?=<m(?!o)|<mo>(?:&#x0222B;|∫))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures that lie outside docs/."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page, code left out, at pages of the site."""
    uri = page.file.src_uri
    here = uri if page.file.generated_by else f"docs/{uri}"

    def rewritten(link: re.Match[str]) -> str:
        target, _, anchor = link["target"].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        place = normpath(f"{here}/../{target}").removeprefix("docs/")
        if files.get_file_from_path(place) is None:
            return link["text"] if "`" in link["text"] else f"`{link['text']}`"
        anchored = relpath(place, Path(uri).parent.as_posix()) + (f"#{anchor}" if anchor else "")
        return f"{link['image']}[{link['text']}]({anchored})"

    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in FENCE.split(markdown))


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn formulas into MathML, which browsers draw without a script."""

    def drawn(found: re.Match[str]) -> str:
        formula = convert(html.unescape(found[2]).strip(), display="block" if found[1] == "div" else "inline")
        return LOGARITHM.sub(r'\1<mspace width="0.17em"/>', formula)  # log p, not logp

    return FORMULA.sub(drawn, content)
