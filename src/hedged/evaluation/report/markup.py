"""Pieces of HTML. What comes from outside goes through `escape`; the rest of the page is written in this package."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Section:
    """A part of the page: its `lead` tells what to see; `lead` and `body` are HTML."""

    anchor: str
    title: str
    lead: str
    body: str

    def html(self) -> str:
        return (
            f'<section id="{escape(self.anchor)}">\n<h2>{escape(self.title)}</h2>\n'
            f'<p class="lead">{self.lead}</p>\n{self.body}\n</section>'
        )


def escape(value: object) -> str:
    """Text made safe for an element or a quoted attribute.

    >>> escape('<b>"7"</b>')
    '&lt;b&gt;&quot;7&quot;&lt;/b&gt;'
    """
    return html.escape(str(value), quote=True)


def data_uri(content: bytes, format_: str = "png") -> str:
    """An image as an address that needs no file."""
    return f"data:image/{format_};base64," + b64encode(content).decode("ascii")


def grid(items: Iterable[str], kind: str) -> str:
    """Items side by side, as many as the screen is wide."""
    return f'<div class="{kind}">\n' + "\n".join(items) + "\n</div>"


def note(message: str) -> str:
    """A line in the place of what could not be shown."""
    return f'<p class="note">{escape(message)}</p>'
