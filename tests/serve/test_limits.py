"""Bombs, tricks, crowds and slow clients: refused within limits, while others are served."""

from __future__ import annotations

import io
import socket
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest
from PIL import Image
from serve.running import Running, call, form, make_place, memory_of, numbers, png, running

from hedged.serve.guard import Rates
from hedged.serve.refusals import Refused
from hedged.serve.settings import Limits

GOOD = png(numbers([7])[0][0])
TIGHT = ("--max-body", "1", "--max-pixels", "2000000", "--max-batch", "12", "--timeout", "4")
ALLOWED = 300  # megabytes that refusing something may take


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("tight")
    with running(make_place(folder), folder / "here", *TIGHT) as found:
        yield found


def bomb(width: int, height: int) -> bytes:
    """An image file that claims so many pixels, all of one colour."""
    content = io.BytesIO()
    Image.new("1", (width, height)).save(content, "PNG")
    return content.getvalue()


def claim(width: int, height: int) -> bytes:
    """A PNG that claims a size that it does not have."""
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(b"")))
    chunks = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(
    ("files", "status", "words"),
    [
        ([bomb(1500, 1500)], 413, "at most 2,000,000"),
        ([claim(60_000, 60_000)], 422, "decompression bomb"),
        ([bomb(1400, 1400)] * 11, 413, "more than 20,000,000 pixels"),
        ([GOOD] * 13, 422, "Maximum number of files is 12"),
        ([b"GIF89a" + b"\0" * 500_000], 422, "file 1"),
        ([b"\0" * 1_100_000], 413, "at most 1,048,576 bytes"),
    ],
)
def test_bombs_are_refused_and_take_no_memory(tight: Running, files: list[bytes], status: int, words: str) -> None:
    before = memory_of(tight.process.pid)
    said = call(tight, "POST", "/v1/embed", tight.read, *form(*files))
    assert (said.status, words in said.content["error"]) == (status, True), said
    assert memory_of(tight.process.pid) < before + ALLOWED


def exchange(service: Running, sent: bytes, wait: float = 10) -> bytes:
    """What comes back for some bytes."""
    with connected(service, wait) as link:
        link.sendall(sent)
        return answer(link)


def answer(link: socket.socket) -> bytes:
    """An answer in JSON, or all there is."""
    received = b""
    while not received.endswith(b"}") and (part := link.recv(65536)):
        received += part
    return received


def connected(service: Running, wait: float = 10) -> socket.socket:
    address = urlsplit(service.address)
    return socket.create_connection((address.hostname, address.port), timeout=wait)


def head(service: Running, *lines: str, path: str = "/v1/embed") -> bytes:
    told = (f"POST {path} HTTP/1.1", "Host: a", f"Authorization: Bearer {service.read}", *lines)
    return "\r\n".join((*told, "", "")).encode()


def test_a_body_of_unknown_length_ends_at_the_limit(tight: Running) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    file = b'--X\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
    sent = head(tight, "Transfer-Encoding: chunked", "Content-Type: multipart/form-data; boundary=X")
    said = exchange(tight, sent + b"%x\r\n%s\r\n" % (len(file), file) + 17 * chunk)
    assert b" 413 " in said.splitlines()[0]
    assert b"at most 1,048,576 bytes" in said


@pytest.mark.parametrize("length", ["99999999999999999999", "-1", "1, 2", "0x10"])
def test_a_length_that_cannot_be_is_refused(tight: Running, length: str) -> None:
    said = exchange(tight, head(tight, f"Content-Length: {length}", "Connection: close"))
    assert said.split()[1] in (b"400", b"413")


def test_a_head_without_end_is_refused(tight: Running) -> None:
    with suppress(ConnectionError):  # which is another way to say so
        assert b" 400 " in exchange(tight, b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: " + b"x" * 200_000).splitlines()[0]
    assert call(tight, "GET", "/health").status == 200


def test_a_body_that_does_not_come_is_waited_for_in_bounds(tight: Running) -> None:
    kind = "Content-Type: multipart/form-data; boundary=X"
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(tight)) for _ in range(50)]
        for link in slow:
            link.sendall(head(tight, "Content-Length: 1000", kind) + b"--X\r\n")
        begun = time.monotonic()
        assert call(tight, "POST", "/v1/embed", tight.read, *form(GOOD)).status == 200  # others are served meanwhile
        assert time.monotonic() - begun < 3
        said = [answer(link) for link in slow]
    assert time.monotonic() - begun < 10
    assert all(b" 503 " in one.splitlines()[0] and b"took more than 4 s" in one for one in said)


@pytest.mark.heavy
def test_clients_that_trickle_or_do_not_read_are_let_go(tight: Running) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(tight, 30)) for _ in range(100)]
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.5):
                for link in slow:
                    try:
                        link.sendall(b"X")
                    except OSError:
                        link.close()

        thread = threading.Thread(target=trickle)
        thread.start()
        begun = time.monotonic()
        assert call(tight, "GET", "/health").status == 200
        for link in slow[:10]:
            with suppress(OSError):  # reset, or closed by the thread that saw it first
                assert link.recv(100) == b""
        assert time.monotonic() - begun < 20
        stop.set()
        thread.join()


def test_huge_or_deep_json_is_refused(tight: Running) -> None:
    for body, status in (
        (b'{"ids": ["' + b"a" * 100_000 + b'"]}', 413),
        (b"[" * 60_000, 400),
        (b"[" * 30_000 + b"]" * 30_000, 400),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, 400),
        (b"1" * 60_000, 400),
        (b'{"kind": "poor", "ids": [' + b'"a",' * 10_000 + b'"a"]}', 422),
    ):
        begun = time.monotonic()
        said = call(tight, "POST", "/v1/audit/dismiss", tight.write, body, "application/json")
        assert (said.status, time.monotonic() - begun < 3) == (status, True), said


def test_more_than_may_wait_is_told_and_nothing_fails(tight: Running) -> None:
    body = form(*[GOOD] * 12)

    def ask(_: int) -> int:
        return call(tight, "POST", "/v1/embed", tight.read, *body).status

    with ThreadPoolExecutor(24) as threads:
        statuses = list(threads.map(ask, range(48)))
    assert set(statuses) <= {200, 503}
    assert 200 in statuses


def test_a_rate_is_limited_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    rates = Rates(Limits().rate)
    for _ in range(10_000):
        rates.take("somebody")
    with pytest.raises(Refused, match="more than 1000 requests a second"):
        rates.take("somebody")
    rates.take("somebody else")


@pytest.mark.heavy
def test_a_client_that_asks_too_often_is_told_when_to_come_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("rate")
    with running(make_place(folder), folder / "here", "--rate", "2") as service:
        for key, good in ((service.read, 200), ("wrong", 401)):
            answers = [call(service, "GET", "/v1/calibration", key) for _ in range(30)]
            statuses = [one.status for one in answers]
            assert set(statuses) == {good, 429}
            assert 20 <= statuses.count(good) <= 29
            refused = next(one for one in answers if one.status == 429)
            assert "more than 2 requests a second" in refused.content["error"]
            assert int(refused.headers["retry-after"]) >= 1
        assert call(service, "GET", "/v1/calibration", service.write).status == 200  # another client
        assert call(service, "GET", "/health").status == 200
