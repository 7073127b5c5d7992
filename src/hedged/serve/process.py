"""One process of the service or several, and a graceful stop."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from hedged.errors import RunError
from hedged.serve.app import create_app
from hedged.serve.guard import MULTIPROCESS
from hedged.serve.settings import Settings

SETTINGS = "HEDGED_SERVE"  # the environment variable that tells further processes what to serve
BACKLOG = 256  # connections that wait to be accepted
GRACE = 20  # seconds that running requests have to end
HEADERS = 64 * 1024  # bytes of a request before its body


def serve(settings: Settings, host: str, port: int, workers: int, ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; requests that run are answered first.

    Args:
        settings: What is served.
        host: The address to listen on.
        port: Its port.
        workers: Processes, each with the model in its memory.
        ready: Called once the model is loaded and the socket listens.
    """
    listening = _listen(host, port)
    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "log_level": "warning",
        "access_log": False,  # the guard logs requests, without what is in them
        "server_header": False,
        "timeout_keep_alive": 5,
        "timeout_graceful_shutdown": GRACE,
        "h11_max_incomplete_event_size": HEADERS,
        "backlog": BACKLOG,
    }
    if workers == 1:
        config = uvicorn.Config(create_app(settings), **options)
        listening.listen(BACKLOG)
        ready()
        uvicorn.Server(config).run([listening])
        return
    with tempfile.TemporaryDirectory(prefix="hedged-metrics-") as folder:
        os.environ[MULTIPROCESS] = folder
        os.environ[SETTINGS] = json.dumps(settings.content())
        from uvicorn.supervisors import Multiprocess

        config = uvicorn.Config("hedged.serve.process:app_of_environment", factory=True, workers=workers, **options)
        listening.listen(BACKLOG)
        ready()
        Multiprocess(config, [listening]).run()


def app_of_environment() -> ASGIApp:
    """The application in a further process."""
    return create_app(Settings.of(json.loads(os.environ[SETTINGS])))


def _listen(host: str, port: int) -> socket.socket:
    """The socket of the service; an address that cannot be had is told in words."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.set_inheritable(True)
    except OSError as error:
        raise RunError(f"cannot listen on {host}, port {port} ({error}): choose another --port, or --host") from error
    return listening
