"""`hedged serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._output import LOGGER, examples
from hedged.cli._runs import Model
from hedged.cli._stores import StoreName
from hedged.errors import ConfigError, MissingDependencyError

EXAMPLES = examples(
    "hedged serve runs/dogs dogs.db",
    "hedged serve runs/dogs dogs.db --pictures photos --port 9000",
    "hedged key keys.json front-end --role read",
    "hedged serve runs/dogs dogs.db --host 0.0.0.0 --keys keys.json --workers 4",
)
MEGABYTE = 2**20


def serve(
    run: Model,
    location: StoreName,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; beyond this machine only with --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, metavar="N", help="The port.")] = 8765,
    keys: Annotated[
        Path | None, typer.Option("--keys", metavar="FILE", help="The keys that open it, made by `hedged key`.")
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option("--pictures", metavar="FOLDER", help="Show pictures of items, from this folder and no other."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, metavar="N", help="Processes, each with the model.")] = 1,
    body: Annotated[int, typer.Option("--max-body", min=1, metavar="MB", help="Size of a request.")] = 32,
    pixels: Annotated[int, typer.Option("--max-pixels", min=1, metavar="N", help="Pixels of an image.")] = 40_000_000,
    batch: Annotated[int, typer.Option("--max-batch", min=1, metavar="N", help="Inputs of a request.")] = 256,
    rate: Annotated[
        float, typer.Option("--rate", min=0, metavar="N", help="Requests a second of one key; 0: any number.")
    ] = 1000.0,
    seconds: Annotated[float, typer.Option("--timeout", min=0.1, metavar="S", help="Time of a request.")] = 30.0,
    proxy: Annotated[
        str | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="Believe X-Forwarded-For of this one, for logs and rates; else of nobody.",
        ),
    ] = None,
) -> None:
    """Serve a model and a store over HTTP, with a page for people.

    Embed, match, search, identify, enrol, remove, audit; /openapi.json describes the calls. Without --keys, a key that
    is made for this start opens it, from this machine only, and the page is opened by the address that is printed.
    Stop it with Ctrl-C: requests that run are answered first. Needs `pip install 'hedged[serve]'` and the extra of the
    store: `'hedged[serve,search]'` for one in a file.
    """
    if keys is None and host not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigError(
            f"--host {host} may be reached from other machines, so it needs keys: make one with "
            "`hedged key FILE NAME`, and give --keys FILE"
        )
    try:
        from hedged.serve.process import serve as run_service
    except ImportError as error:
        raise MissingDependencyError(f"the service needs {error.name}: pip install 'hedged[serve]'") from error
    from hedged.serve import Keys, Limits, Settings

    limits = Limits(body * MEGABYTE, pixels, batch, rate=rate, seconds=seconds)
    key = None if keys else Keys.new_key()
    settings = Settings(str(run), str(location), keys, key, pictures, limits)
    shown = f"[{host}]" if ":" in host else host
    LOGGER.info("loading the model")
    run_service(settings, host, port, workers, proxy, ready=lambda: _say(f"http://{shown}:{port}/", key))


def _say(address: str, key: str | None) -> None:
    if key is None:
        print(f"serving on {address}", flush=True)
    else:
        print(f"open {address}#key={key}\nthe key of this start, for programs: {key}", flush=True)
