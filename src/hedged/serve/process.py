"""One process of the service or several, and a graceful stop."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, final

import uvicorn
from prometheus_client import multiprocess
from starlette.types import ASGIApp
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from hedged._parallel import cores
from hedged.errors import HedgedError, RunError
from hedged.serve.app import create_app
from hedged.serve.connection import Connection
from hedged.serve.guard import LOGGER, MULTIPROCESS
from hedged.serve.logs import start_log
from hedged.serve.service import Service
from hedged.serve.settings import Settings

BACKLOG = 256  # connections that wait to be accepted
GRACE = 2.0  # seconds beyond the time of a request that a stop waits for those that run
HEADERS = 64 * 1024  # bytes of a request before its body
LOADING = 120  # seconds that a process may take to load, when all are started anew
ANOTHER_TRY = 5.0  # seconds before a process that could not start is started again
THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")  # the environment variables that say how many a process has


def serve(settings: Settings, host: str, port: int, workers: int, proxy: str | None, ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; requests that run are answered first.

    Args:
        settings: What is served.
        host: The address to listen on.
        port: Its port.
        workers: Processes, each with the model in its memory.
        proxy: The address of a proxy that says in X-Forwarded-For who asks; None: nobody is believed.
        ready: Called once the model is loaded and the socket listens.
    """
    start_log()
    with _listen(host, port) as listening:
        _serve_on(listening, settings, {"host": host, "port": port, **_believed(proxy)}, workers, ready)


def _believed(proxy: str | None) -> dict[str, Any]:
    """What uvicorn is told of a proxy."""
    return {"proxy_headers": False} if proxy is None else {"proxy_headers": True, "forwarded_allow_ips": proxy}


def _serve_on(
    listening: socket.socket, settings: Settings, options: dict[str, Any], workers: int, ready: Callable[[], None]
) -> None:
    options |= {
        "http": Connection,
        "ws": "none",
        "log_config": None,
        "log_level": "warning",
        "access_log": False,  # the guard logs requests, without what is in them
        "server_header": False,
        "timeout_keep_alive": 5,
        "timeout_graceful_shutdown": int(settings.limits.seconds + GRACE),
        "h11_max_incomplete_event_size": HEADERS,
        "backlog": BACKLOG,
    }
    if workers == 1:
        config = uvicorn.Config(create_app(settings), **options)
        listening.listen(BACKLOG)
        ready()
        uvicorn.Server(config).run([listening])
        return
    Service.of(settings).close()  # what cannot be served is told here, once
    for name in THREADS:
        os.environ.setdefault(name, str(max(1, cores() // workers)))
    with tempfile.TemporaryDirectory(prefix="hedged-metrics-") as folder:
        os.environ[MULTIPROCESS] = folder
        app, level = partial(_app_of_worker, settings), {"timeout_worker_healthcheck": LOADING}
        config = uvicorn.Config(app, factory=True, workers=workers, **options, **level)  # type: ignore[arg-type]
        listening.listen(BACKLOG)
        ready()
        _Workers(config, [listening]).run()


@final
class _Workers(Multiprocess):
    """Processes that serve; one that ends is started again. One that says nothing may be loading: it is left."""

    def keep_subprocess_alive(self) -> None:
        for place, worker in enumerate(self.processes):
            if not self.should_exit.is_set() and not worker.process.is_alive():
                worker.join()
                LOGGER.warning("a worker has ended with code %s and is started again", worker.exitcode)
                self.processes[place] = Process(self.config, self.sockets)
                self.processes[place].start()


def _app_of_worker(settings: Settings) -> ASGIApp:
    """The application in one of several processes, which ends when the one that started it does."""
    start_log()
    threading.Thread(target=_end_with_parent, name="hedged-parent", daemon=True).start()
    _forget_the_dead(Path(os.environ[MULTIPROCESS]))
    try:
        return create_app(settings)
    except HedgedError as error:  # it could be served before: others still do
        LOGGER.error("this process cannot serve, and tries again in %g s: %s", ANOTHER_TRY, error)
        time.sleep(ANOTHER_TRY)
        sys.exit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _forget_the_dead(folder: Path) -> None:
    """Let the numbers of now leave out processes that have ended."""
    for path in folder.glob("gauge_live*_*.db"):
        number = int(path.stem.rpartition("_")[2])
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            multiprocess.mark_process_dead(number, str(folder))  # type: ignore[no-untyped-call]


def _listen(host: str, port: int) -> socket.socket:
    """The socket of the service; an address that cannot be had is told in words."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    except OSError as error:
        raise RunError(f"--host {host} is no address of this machine ({error}): choose another") from error
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.set_inheritable(True)
    except OSError as error:
        listening.close()
        raise RunError(f"cannot listen on {host}, port {port} ({error}): choose another --port, or --host") from error
    return listening
