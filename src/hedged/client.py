"""Calls of a service that `hedged serve` runs, without NumPy and torch.

Beyond the standard library it takes `lazy-loader` alone, by which the package imports its names.

>>> from hedged.client import Client
>>> with Client("http://127.0.0.1:8765", key="…") as client:  # doctest: +SKIP
...     answer = client.match("a.jpg", "b.jpg")
...     if answer["decision"] != "accept":
...         print("not sure enough:", answer["probability"])
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypedDict, cast, final
from urllib.parse import urlencode, urlsplit

from hedged.errors import HedgedError

Image: TypeAlias = str | Path | bytes
"""The path of an image file, or its content."""
Vector: TypeAlias = Sequence[float]
"""The output of a network of yours; arrays will do."""
Input: TypeAlias = Image | Vector
"""What a model takes: an image or a vector."""
Kind: TypeAlias = Literal["mislabelled", "duplicates", "divided", "poor"]
"""The kinds of findings of an audit."""
_IDLE = 3.0  # seconds after which a connection is not used again


class ServiceError(HedgedError):
    """A call that was refused, or a service that cannot be reached.

    Args:
        message: What the service says, or why it cannot be reached.
        status: The status of HTTP; 0: no answer came.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Embedding(TypedDict):
    """What the model knows of an input."""

    kind: str
    mean: list[Any]
    variance: list[Any]
    uncertainty: float
    novelty: float | None


class Calibrated(TypedDict):
    """A calibrated probability, where so many pairs match."""

    probability: float
    base_rate: float


class Dimension(TypedDict):
    """What one dimension says about a pair."""

    dimension: int
    difference: float
    spread: float
    log_odds: float | None


class Match(TypedDict):
    """Whether two inputs match, and why."""

    probability: float
    log_odds: float
    calibrated: Calibrated | None
    decision: Literal["accept", "reject", "abstain", "same", "different", "unsure"]
    rule: str
    uncertainty: list[float]
    novelty: list[float | None]
    distance: float
    dimensions: list[Dimension]


class Hit(TypedDict):
    """A stored item that matches."""

    rank: int
    id: str
    label: str | None
    probability: float
    log_odds: float
    uncertainty: float
    metadata: dict[str, Any]


class Hits(TypedDict):
    """The items that match an input best."""

    uncertainty: float
    novelty: float | None
    hits: list[Hit]


class Candidate(TypedDict):
    """An identity that an input may show."""

    label: str
    probability: float
    log_odds: float
    images: int
    items: list[str]


class Candidates(TypedDict):
    """A set that holds the right answer as often as was promised."""

    labels: list[str]
    nobody: bool
    coverage: float


class Who(TypedDict):
    """Who an input shows; a label of None: nobody in the store."""

    label: str | None
    probability: float
    none_probability: float
    uncertainty: float
    novelty: float | None
    decision: Literal["accept", "reject", "abstain"] | None
    best: list[Candidate]
    candidates: Candidates | None


class Item(TypedDict):
    """A stored item."""

    id: str
    label: str | None
    uncertainty: float
    novelty: float | None
    metadata: dict[str, Any]


class Items(TypedDict):
    """Some of the stored items."""

    total: int
    items: list[Item]


class Enrolled(TypedDict):
    """What was stored, and what looks wrong about it."""

    ids: list[str]
    warnings: list[str]


@final
class Client:
    """A service and a key. It keeps one connection, so it is for one thread; others make their own.

    Args:
        address: Of the service, such as `http://127.0.0.1:8765`.
        key: As `hedged key` or `hedged serve` printed it.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, address: str, key: str, timeout: float = 30.0) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServiceError(f"the address of a service reads http://HOST:PORT, got {address!r}")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._prefix, self._address = parts.path.rstrip("/"), address
        self._used = time.monotonic()
        self._headers = {"Authorization": f"Bearer {key}"}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def model(self) -> dict[str, Any]:
        """The model card."""
        return cast(dict[str, Any], self._call("GET", "/v1/model"))

    def calibration(self) -> dict[str, Any] | None:
        """How the service decides, and the pairs it was calibrated on; None if it was not."""
        return cast("dict[str, Any] | None", self._call("GET", "/v1/calibration"))

    def embed(self, inputs: Iterable[Input]) -> list[Embedding]:
        """The embedding of each input.

        Args:
            inputs: Paths or the content of image files, or vectors.
        """
        return cast(list[Embedding], self._ask("/v1/embed", inputs)["embeddings"])

    def match(self, first: Input, second: Input) -> Match:
        """Whether two inputs match, and why.

        Args:
            first: The path or the content of an image file, or a vector.
            second: The other.
        """
        return cast(Match, self._ask("/v1/match", (first, second)))

    def search(self, inputs: Iterable[Input], k: int = 5, where: Mapping[str, str] | None = None) -> list[Hits]:
        """The stored items that match each input best.

        Args:
            inputs: Paths or the content of image files, or vectors.
            k: How many.
            where: Only items with these values, by key.
        """
        filters = [("where", f"{key}={value}") for key, value in (where or {}).items()]
        return cast(list[Hits], self._ask("/v1/search", inputs, [("k", str(k)), *filters])["results"])

    def identify(
        self, inputs: Iterable[Input], top: int = 3, none: float = 0.1, coverage: float | None = None
    ) -> list[Who]:
        """Who each input shows, or nobody.

        Args:
            inputs: Paths or the content of image files, or vectors.
            top: How many identities each answer lists.
            none: The share of inputs that show nobody in the store.
            coverage: Also list candidates that hold the right answer this often; None: do not.
        """
        query = [("top", str(top)), ("none", str(none)), *([("coverage", str(coverage))] if coverage else [])]
        return cast(list[Who], self._ask("/v1/identify", inputs, query)["results"])

    def enrol(
        self,
        inputs: Iterable[Input],
        labels: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Enrolled:
        """Store inputs, all or none; once this returns, they are on disk.

        Args:
            inputs: Paths or the content of image files, or vectors.
            labels: The identity of each; None: not known.
            ids: A different id for each; None: the service makes them.
            metadata: JSON values by key for each; None: none.
        """
        columns = {"labels": labels, "ids": ids, "metadata": metadata}
        given = {name: list(column) for name, column in columns.items() if column is not None}
        return cast(Enrolled, self._ask("/v1/items", inputs, columns=given))

    def remove(self, ids: Iterable[str]) -> int:
        """Remove items, and return how many there were.

        Args:
            ids: Their ids.
        """
        return int(self._call("DELETE", "/v1/items", [("id", one) for one in ids])["removed"])

    def items(self, order: Literal["added", "uncertainty"] = "added", offset: int = 0, limit: int = 50) -> Items:
        """Stored items.

        Args:
            order: As they were added, or the most uncertain first.
            offset: How many are passed over.
            limit: How many are wanted.
        """
        query = [("order", order), ("offset", str(offset)), ("limit", str(limit))]
        return cast(Items, self._call("GET", "/v1/items", query))

    def audit(self) -> dict[str, Any]:
        """What may be wrong with the store."""
        return cast(dict[str, Any], self._call("GET", "/v1/audit"))

    def accept(self, kind: Kind, ids: Sequence[str]) -> str:
        """Do what a finding of the audit suggests, and return what was done.

        Args:
            kind: Of finding.
            ids: What names it: the item, both items, or the label.
        """
        return str(self._call("POST", "/v1/audit/accept", content={"kind": kind, "ids": list(ids)})["done"])

    def dismiss(self, kind: Kind, ids: Sequence[str]) -> str:
        """Never show a finding again.

        Args:
            kind: Of finding.
            ids: What names it.
        """
        return str(self._call("POST", "/v1/audit/dismiss", content={"kind": kind, "ids": list(ids)})["done"])

    def _ask(
        self,
        path: str,
        inputs: Iterable[Input],
        query: Sequence[tuple[str, str]] = (),
        columns: Mapping[str, list[Any]] | None = None,
    ) -> Any:
        """The answer to a call with inputs: a form of images, or vectors as JSON."""
        given = [inputs] if isinstance(inputs, str | Path | bytes) else list(inputs)
        images = [one for one in given if isinstance(one, str | Path | bytes)]
        if not images:
            vectors = [one.tolist() if hasattr(one, "tolist") else list(cast(Vector, one)) for one in given]
            return self._call("POST", path, query, {"vectors": vectors, **(columns or {})})
        if len(images) != len(given):
            raise ServiceError("inputs are images or vectors, got some of each: send one kind at a time")
        kind, body = _form(images, columns or {})
        return self._send("POST", path, query, body, kind)

    def _call(self, method: str, path: str, query: Sequence[tuple[str, str]] = (), content: Any = None) -> Any:
        body = b"" if content is None else json.dumps(content).encode()
        return self._send(method, path, query, body, "application/json" if content is not None else "")

    def _send(self, method: str, path: str, query: Sequence[tuple[str, str]], body: bytes, kind: str) -> Any:
        if time.monotonic() - self._used > _IDLE:
            self._connection.close()  # before the service does
        target = f"{self._prefix}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = self._headers | ({"Content-Type": kind} if kind else {})
        fresh = self._connection.sock is None
        try:
            self._connection.request(method, target, body or None, headers)
            response = self._connection.getresponse()
            content = response.read()
            self._used = time.monotonic()
        except (OSError, HTTPException) as error:
            self._connection.close()
            if fresh or method != "GET":
                raise ServiceError(f"{self._address} does not answer ({error}): is `hedged serve` running?") from error
            return self._send(method, path, query, body, kind)  # the connection had grown old
        try:
            answer = json.loads(content)
        except ValueError as error:
            words = f"{self._address} answered {response.status} without JSON: is it a service of hedged?"
            raise ServiceError(words, response.status) from error
        if response.status >= 400:
            said = answer.get("error") if isinstance(answer, dict) else None
            raise ServiceError(said or f"{self._address} answered {response.status}", response.status)
        return answer


def _form(images: Sequence[Image], columns: Mapping[str, list[Any]]) -> tuple[str, bytes]:
    """A multipart form, as text of its type and bytes."""
    boundary = uuid.uuid4().hex
    parts = []
    for image in images:
        content = image if isinstance(image, bytes) else Path(image).read_bytes()
        parts.append((b'name="files"; filename="image"\r\nContent-Type: application/octet-stream', content))
    for name, column in columns.items():
        for value in column:
            text = json.dumps(value) if name == "metadata" else str(value)
            parts.append((f'name="{name}"'.encode(), text.encode()))
    mark = f"--{boundary}\r\n".encode()
    body = b"".join(
        mark + b"Content-Disposition: form-data; " + head + b"\r\n\r\n" + content + b"\r\n" for head, content in parts
    )
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()
