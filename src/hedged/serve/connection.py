"""HTTP/1.1 that does not wait for slow clients for ever: a request begins, and its answer is taken, in time."""

from __future__ import annotations

import asyncio
from typing import Any, final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0  # for the head of a request to come
ANSWER_SECONDS = 60.0  # for an answer to be taken
LOOK_SECONDS = 2.0  # between looks at a connection
MOST_CONNECTIONS = 1000  # at a time; more are closed at once


@final
class Connection(H11Protocol):
    """A connection of uvicorn's, with a watch on it. The time that a request takes itself is the guard's to limit.

    What comes of a request after its answer is read and thrown away for a while: most clients look for the answer only
    when they have sent all.

    Args:
        given: What uvicorn passes on.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._since = 0.0  # when the last answer was given, or the connection was made
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch.

        Args:
            transport: To the client.
        """
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._since = self.loop.time()
        self._watch = self.loop.call_later(LOOK_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer.

        Args:
            exc: Why it was lost.
        """
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The time for the answer to be taken begins, and that for the next request."""
        self._since = self.loop.time()
        super().on_response_complete()

    def _look(self) -> None:
        is_asked = self.cycle is not None and not self.cycle.response_complete
        most = ANSWER_SECONDS if self.transport.get_write_buffer_size() else HEAD_SECONDS
        given_up = self.transport.is_closing() if is_asked else self.loop.time() - self._since > most
        if given_up:
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(LOOK_SECONDS, self._look)
