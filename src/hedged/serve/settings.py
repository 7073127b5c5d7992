"""What is served, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from hedged.errors import ConfigError

MEGABYTE = 2**20
IMAGES = 10  # of the largest size that a request may hold


@final
@dataclass(frozen=True)
class Limits:
    """How much one client may ask for.

    Args:
        body: Bytes of a request.
        pixels: Pixels of an uploaded image; those of a request have ten times as many at most.
        batch: Inputs of a request.
        waiting: Inputs that may wait for the model; above that, clients are asked to come back.
        rate: Requests a second of one key, or of one address without a key, averaged over ten seconds; 0: any number.
        seconds: Time that a request may take, its upload included.
    """

    body: int = 32 * MEGABYTE
    pixels: int = 40_000_000
    batch: int = 256
    waiting: int = 2048
    rate: float = 1000.0
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name in ("body", "pixels", "batch", "waiting", "seconds"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"the limit {name} must be greater than 0, got {getattr(self, name)}")
        if not 0 <= self.rate < float("inf"):
            raise ConfigError(f"the limit rate is a number of requests a second, 0 for any, got {self.rate}")


@final
@dataclass(frozen=True)
class Settings:
    """What is served.

    Args:
        run: The folder of the model, or the name of one that ships.
        store: The path or address of the store.
        keys: The file of keys; None: only `key` opens the service.
        key: A key with the role "write" that is not in the file, for a service on one machine.
        pictures: The folder with the pictures of items, and where those of enrolled images are kept; None: no pictures.
        limits: How much one client may ask for.
    """

    run: str
    store: str
    keys: Path | None = None
    key: str | None = field(default=None, repr=False)
    pictures: Path | None = None
    limits: Limits = Limits()
