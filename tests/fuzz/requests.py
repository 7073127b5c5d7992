"""What clients send to the service: heads and bodies of requests, each answered in words and never with 5xx."""

from __future__ import annotations

import asyncio
import io
import json
import os
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, final

import numpy as np
from fuzz.seeds import FileTarget, files_of
from PIL import Image

from hedged import Embedder, Retrofit
from hedged.errors import DataError
from hedged.search import Gallery
from hedged.serve import Settings, create_app

KEY = "a key"
HEAD = "head.txt"
FORM = "multipart/form-data; boundary=X"
IMAGE_REQUESTS = (
    "POST /v1/embed",
    "POST /v1/match",
    "POST /v1/search?k=3&where=label=a",
    "POST /v1/identify?top=2&none=0.2&coverage=0.5",
    "POST /v1/items",
)


@final
class Requests(FileTarget):
    """Forms of images, JSON of vectors, findings and queries, to a service of each kind in this process."""

    name = "requests"

    def prepare(self) -> None:
        self._folder, self._apps, self._process = Path(mkdtemp(prefix="hedged-fuzz-")), dict[str, Any](), 0
        Embedder.load("hedged:ndigit-2d").save(self._folder / "images")
        random = np.random.default_rng(0)
        y = np.repeat(np.arange(20), 5)
        x = (random.normal(size=(20, 8))[y] + 0.2 * random.normal(size=(100, 8))).astype(np.float32)
        Retrofit(seed=0).fit(x, y).save(self._folder / "vectors")
        numbers = random.integers(0, 255, (6, 28, 56), dtype=np.uint8)
        for kind, inputs in (("images", numbers), ("vectors", x[:6])):
            with Gallery.create(self._folder / f"{kind}.db", Embedder.load(self._folder / kind)) as gallery:
                gallery.add(inputs, labels=list("aabbcc"), ids=[f"item {i}" for i in range(6)])
        places = self.write_seeds(Path(mkdtemp(dir=self._folder)))
        self._seeds = [files_of(place) for place in places]
        for place in places:
            with suppress(DataError):  # some are about findings that there are not
                self.use(place)
        self._close()

    def write_seeds(self, folder: Path) -> list[Path]:
        content = io.BytesIO()
        Image.new("L", (56, 28), 200).save(content, "PNG")
        vectors = [[0.1 * i for i in range(8)]] * 2
        columns = {"labels": ["a", "b"], "metadata": [{"year": 2026}, {}]}
        seeds: list[tuple[str, str, str, bytes]] = []
        for line in IMAGE_REQUESTS:
            fields = {"labels": ["a", "b"], "metadata": ['{"year": 2026}', "{}"]} if line.endswith("items") else {}
            seeds.append(("images", f"{line}\n{FORM}", "body.form", _form([content.getvalue()] * 2, fields)))
            told = json.dumps({"vectors": vectors, **(columns if line.endswith("items") else {})}).encode()
            seeds.append(("vectors", f"{line}\napplication/json", "body.json", told))
        for line in ("POST /v1/audit/accept", "POST /v1/audit/dismiss"):
            finding = json.dumps({"kind": "poor", "ids": ["item 1"]}).encode()
            seeds.append(("images", f"{line}\napplication/json", "body.json", finding))
        lines = (
            "GET /v1/items?order=uncertainty&offset=1&limit=2",
            "GET /v1/map?limit=3",
            "GET /v1/items/picture?id=item%201",
            "DELETE /v1/items?id=item%20x&id=y",
        )
        seeds += [("vectors", f"{line}\n", "body.form", b"x") for line in lines]
        for number, (kind, head, name, body) in enumerate(seeds):
            place = folder / str(number)
            place.mkdir()
            (place / HEAD).write_text(f"{kind}\n{head}", encoding="utf-8")
            (place / name).write_bytes(body)
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        head = (folder / HEAD).read_bytes().split(b"\n")
        (body,) = (path.read_bytes() for path in folder.glob("body.*"))
        request = head[1].split(b" ") if len(head) == 3 else []
        if len(request) != 2 or not request[1].startswith(b"/"):
            raise DataError("no request")  # an HTTP server sees to that
        status = asyncio.run(self._status(head[0].decode(errors="replace"), request[0], request[1], head[2], body))
        assert status < 500, status
        if status >= 400:
            raise DataError("refused")

    async def _status(self, kind: str, method: bytes, target: bytes, content_type: bytes, body: bytes) -> int:
        app = self._app("vectors" if kind == "vectors" else "images")
        path, _, query = target.partition(b"?")
        parts, statuses = [body[: len(body) // 2], body[len(body) // 2 :]], list[int]()
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method.decode("latin1"),
            "path": path.decode(errors="replace"),
            "raw_path": path,
            "root_path": "",
            "query_string": query,
            "headers": [(b"authorization", f"Bearer {KEY}".encode()), (b"content-type", content_type)],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "scheme": "http",
            "state": {},
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": parts.pop(0) if parts else b"", "more_body": bool(parts)}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await app(scope, receive, send)
        return statuses[0]

    def _app(self, kind: str) -> Any:
        """The service of a kind, in this process: threads do not come along when it forks."""
        if self._process != os.getpid():
            self._process, self._apps = os.getpid(), {}
        if kind not in self._apps:
            self._apps[kind] = create_app(Settings(str(self._folder / kind), str(self._folder / f"{kind}.db"), key=KEY))
        return self._apps[kind]

    def _close(self) -> None:
        for app in self._apps.values():
            app.app.state.service.close()
        self._apps, self._process = {}, 0


def _form(files: list[bytes], fields: dict[str, list[str]]) -> bytes:
    head = b'--X\r\nContent-Disposition: form-data; name="'
    lines = [head + b'files"; filename="a.png"\r\n\r\n' + content for content in files]
    lines += [head + f'{name}"\r\n\r\n{value}'.encode() for name, values in fields.items() for value in values]
    return b"\r\n".join([*lines, b"--X--\r\n"])
