"""What the verbs that use a store share: their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hedged.models import Embedder
    from hedged.search import Store, Where

StoreName = Annotated[
    str, typer.Argument(metavar="STORE", help="A store: a file, or an address, postgresql://… or lance://…")
]
Wheres = Annotated[
    list[str],
    typer.Option("--where", metavar="KEY=VALUE", help="Only rows with this label, id or metadata; may be repeated."),
]
CandidateCount = Annotated[
    int | None,
    typer.Option(
        "--candidates",
        min=1,
        metavar="N",
        help="Rows that the first stage passes on to be ranked. [100 or 1000; 10 × K if that is more]",
    ),
]
EfSearch = Annotated[
    int | None,
    typer.Option("--ef-search", min=1, metavar="N", help="Search width of an HNSW graph, if the store has one. [200]"),
]


def filters(texts: list[str]) -> list[Where]:
    """The filters that --where names.

    Args:
        texts: KEY=VALUE each.
    """
    from hedged.search import parse_where

    return [parse_where(text) for text in texts]


def check_model(store: Store, embedder: Embedder) -> None:
    """Refuse a model that did not make the embeddings of a store, before any work is done.

    Args:
        store: The store.
        embedder: The model.
    """
    store.header.check_model(embedder.fingerprint())
