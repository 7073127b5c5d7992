"""What stands before every call: limits on bodies, rates and times; headers; logs; metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Any, NamedTuple, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hedged.serve.logs import TOLD
from hedged.serve.refusals import Refused, busy
from hedged.serve.settings import Limits

LOGGER = logging.getLogger("hedged.serve")
MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
BURST = 10.0  # seconds over which the rate of a client is the average
MOST_CLIENTS = 10_000  # whose rates are remembered
MOST_BODIES = 16  # whole bodies of the largest size that may be in memory
DRAINED = 4  # bodies of the largest size that are thrown away after a request was refused,
DRAIN_SECONDS = 3.0  # and for how long
BUG = "a bug in hedged: the log of the service has the details"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Metrics(NamedTuple):
    """What is counted.

    Args:
        registry: All of it, for Prometheus.
        requests: Requests by call and status.
        seconds: Their times by call.
        inputs: Inputs that were embedded.
        waiting: Inputs that wait for the model.
    """

    registry: CollectorRegistry
    requests: Counter
    seconds: Histogram
    inputs: Counter
    waiting: Gauge

    @classmethod
    def new(cls) -> Metrics:
        """Counters at zero; with several processes, each adds to the same ones."""
        registry = CollectorRegistry()
        return cls(
            registry,
            Counter("hedged_requests", "Requests answered.", ("call", "status"), registry=registry),
            Histogram(
                "hedged_request_seconds", "Seconds from the first byte to the answer.", ("call",), registry=registry
            ),
            Counter("hedged_inputs", "Images or vectors embedded.", registry=registry),
            Gauge(
                "hedged_inputs_waiting",
                "Inputs that wait for the model.",
                registry=registry,
                multiprocess_mode="livesum",
            ),
        )

    def text(self) -> bytes:
        """All numbers in the text format of Prometheus, those of all processes."""
        if MULTIPROCESS not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


@final
class Rates:
    """Requests a second of each client: a bucket that fills at the allowed rate and holds ten seconds of it.

    Args:
        rate: Requests a second; 0: any number.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> None:
        """Count a request, or refuse it.

        Args:
            client: Who asks.
        """
        if not self._rate:
            return
        now, most = time.monotonic(), max(1.0, self._rate * BURST)
        left, seen = self._left.pop(client, (most, now))
        left = min(most, left + (now - seen) * self._rate)
        self._left[client] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        if left < 1:
            wait = math.ceil((1 - left) / self._rate)
            raise Refused(429, f"more than {self._rate:g} requests a second: try again in {wait} s", wait)


@final
class Guard:
    """An ASGI application in front of another.

    Args:
        app: The calls.
        limits: Of bodies and times.
        metrics: What is counted.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics) -> None:
        self.app, self._limits, self._metrics = app, limits, metrics
        self._held = 0  # bytes of the bodies of all requests that run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request within the limits.

        Args:
            scope: Of the request.
            receive: Its body.
            send: Where the answer goes.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, taken, is_whole = time.perf_counter(), 0, 0, False

        async def limited() -> Message:
            nonlocal taken, is_whole
            message = await receive()
            is_whole = not message.get("more_body", False)
            size = len(message.get("body", b""))
            taken, self._held = taken + size, self._held + size
            if taken > self._limits.body:
                raise Refused(413, self._too_large())
            if self._held > MOST_BODIES * self._limits.body:
                raise busy("too many large requests are being read: try again in a second")
            return message

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status >= 400 and not is_whole:
                    await self._drain(receive)
                known = {name.lower() for name, _ in message.get("headers", ())}
                message["headers"] = [
                    *message.get("headers", ()),
                    *((n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in known),
                ]
            await send(message)

        try:
            self._check_length(scope)
            async with asyncio.timeout(self._limits.seconds):
                await self.app(scope, limited, guarded)
        except Refused as error:  # those of the calls are answered there
            await _say(guarded, error)
        except TimeoutError:
            if not status:
                words = f"this took more than {self._limits.seconds:g} s: send less at a time, or try again later"
                is_whole = True  # there is no more time for it
                await _say(guarded, busy(words))
        except asyncio.CancelledError:
            status = status or 499
            raise
        except Exception:
            LOGGER.exception("a call failed")
            if not status:
                await _say(guarded, Refused(500, BUG))
        finally:
            self._held -= taken
            self._count(scope, status, time.perf_counter() - begun)

    async def _drain(self, receive: Receive) -> None:
        """Throw away the rest of a request, within bounds: most clients look for an answer when they have sent all."""
        left = DRAINED * self._limits.body
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0 and (message := await receive()).get("more_body", False):
                    left -= len(message["body"])

    def _check_length(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > self._limits.body):
                raise Refused(413, self._too_large())

    def _too_large(self) -> str:
        return f"a request has at most {self._limits.body:,} bytes: send fewer inputs at a time"

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        call = getattr(scope.get("route"), "path", "other")
        self._metrics.requests.labels(call, str(status)).inc()
        self._metrics.seconds.labels(call).observe(seconds)
        caller = scope.get("state", {}).get("caller")
        told: dict[str, Any] = {
            "method": scope["method"],
            "call": call,
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
            "key": caller.name if caller else None,
            "client": (scope.get("client") or ("",))[0],
        }
        LOGGER.info("request", extra={TOLD: told})


async def _say(send: Send, refused: Refused) -> None:
    body = json.dumps({"error": str(refused)}).encode()
    told = {"content-type": "application/json", "content-length": str(len(body))}
    headers = [(name.encode(), value.encode()) for name, value in (refused.headers() | told).items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
