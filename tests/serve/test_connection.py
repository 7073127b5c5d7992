"""Clients that do not take their answer, and too many of them, are cut off; others are served."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from serve.running import PATIENCE
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hedged.serve import connection

LONG = 64 * 2**20  # bytes: more than the system keeps for a client
ASK = b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n"


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """A long answer at /long, a short one elsewhere."""
    await Response(bytes(LONG) if scope["path"] == "/long" else b"short")(scope, receive, send)


@contextmanager
def serving() -> Iterator[tuple[uvicorn.Server, Callable[[], socket.socket]]]:
    """A server of these answers, and a way to connect to it."""
    options = {"http": connection.Connection, "ws": "none", "lifespan": "off", "log_config": None}
    server = uvicorn.Server(uvicorn.Config(answer, **options))  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        wait_until(lambda: server.started)
        yield server, lambda: socket.create_connection(listening.getsockname(), PATIENCE)
        server.should_exit = True
        thread.join()


def wait_until(condition: Callable[[], object]) -> None:
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < PATIENCE
        time.sleep(0.01)


def test_a_client_that_does_not_take_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(connection, "LOOK_SECONDS", 0.1)
    with serving() as (server, connect), connect() as link:
        link.sendall(ASK % b"/long")
        wait_until(lambda: server.server_state.total_requests)
        wait_until(lambda: not server.server_state.connections)
        received = 0
        with suppress(ConnectionError):  # which is another way to be cut off
            while part := link.recv(2**20):
                received += len(part)
        assert received < LONG
        with connect() as other:
            other.sendall(ASK % b"/")
            assert other.recv(2**16).startswith(b"HTTP/1.1 200")


def test_more_connections_than_may_be_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_CONNECTIONS", 3)
    with serving() as (server, connect), ExitStack() as stack:
        first = [stack.enter_context(connect()) for _ in range(3)]
        wait_until(lambda: len(server.server_state.connections) == 3)
        with connect() as one_more, suppress(ConnectionError):
            one_more.sendall(ASK % b"/")
            assert one_more.recv(2**16) == b""
        for link in first:
            link.sendall(ASK % b"/")
            assert link.recv(2**16).startswith(b"HTTP/1.1 200")
        first[0].close()
        wait_until(lambda: len(server.server_state.connections) == 2)
        with connect() as next_one:
            next_one.sendall(ASK % b"/")
            assert next_one.recv(2**16).startswith(b"HTTP/1.1 200")
