"""Embedding on a Ray cluster: each piece of the inputs is a task, and becomes a shard that the manifest names.

A task writes its shard aside; the driver moves it to its place and then names it. A worker or node that is lost has its
task done again elsewhere. When the driver itself is lost, the next one makes what the manifest does not name.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, final

import torch

from hedged._files import make_folder
from hedged._locks import owning
from hedged._progress import progress
from hedged.data.tables import require_pyarrow
from hedged.errors import RunError
from hedged.models.bulk.cluster import check_nodes, cores_of, joined, told
from hedged.models.bulk.manifest import Manifest, Shard
from hedged.models.bulk.pieces import Piece, pieces_of
from hedged.models.bulk.shards import embed_piece
from hedged.models.embedder import Embedder

SHARD_SIZE = 1_000  # inputs of a shard by default
RETRIES = 3  # of a piece whose worker or node was lost
AHEAD = 2  # tasks for each core, so that none waits for the driver
PATIENCE = 1.0  # seconds between two looks at what is finished
ROW_BYTES = 128  # of a row beside its numbers: its id, its uncertainty
UNFINISHED = ".unfinished"  # the folder in which tasks write
LOCK = ".lock"


def embed_on_ray(
    embedder: Embedder,
    given: Sequence[Path],
    out: Path,
    address: str = "local",
    shard_size: int = SHARD_SIZE,
    retry_broken: bool = True,
) -> Manifest:
    """Embed inputs into a folder of Parquet shards, and continue where that was stopped.

    Args:
        embedder: The model.
        given: Image files, WebDataset tars and Parquet files, and folders of them; every node must see them.
        out: The folder, which every node must see too.
        address: Of the head of a Ray cluster, host:port; "local" for the cores of this machine.
        shard_size: How many inputs a shard has at most.
        retry_broken: Whether finished shards are made again if some of their inputs were broken.
    """
    require_pyarrow("writing shards", instead="`hedged embed` without --ray, and an .npz file")
    fingerprint = embedder.fingerprint()
    pieces = pieces_of(given, embedder.shape, shard_size)
    with _owned(out) as aside:
        manifest = Manifest.of(out, fingerprint, pieces, shard_size).continued()
        unfinished = manifest.unfinished(retry_broken)
        if unfinished:
            left = [pieces[number] for number in unfinished]
            with joined(address) as ray:
                check_nodes(ray, aside, left[0].source, sum(map(len, left)) * _row_bytes(embedder))
                manifest.write()
                _Job(ray, manifest, pieces, aside).run(embedder, fingerprint, unfinished)
    return manifest


@final
@dataclass(frozen=True)
class _Job:
    """The tasks of a job, and what becomes of them.

    Args:
        ray: The module, which has joined a cluster.
        manifest: Of the shards; finished ones are added.
        pieces: Of all inputs.
        aside: Where tasks write.
    """

    ray: Any
    manifest: Manifest
    pieces: Sequence[Piece]
    aside: Path

    def run(self, embedder: Embedder, fingerprint: str, unfinished: Sequence[int]) -> None:
        """Make the shards that are not finished.

        Args:
            embedder: The model.
            fingerprint: Of the model.
            unfinished: Their numbers.
        """
        task = self.ray.remote(num_cpus=1, max_retries=RETRIES)(embed_piece)
        given = self.ray.put(embedder), fingerprint
        root, numbers = Path.cwd(), iter(unfinished)
        pending: dict[Any, int] = {}
        start = self.manifest.count - sum(len(self.pieces[number]) for number in unfinished)
        try:
            with progress("embedding", self.manifest.count, start) as update:
                while True:
                    for number in islice(numbers, max(AHEAD * cores_of(self.ray) - len(pending), 0)):
                        out = self.aside.absolute() / f"{number:06}.{uuid.uuid4().hex}.parquet"
                        pending[task.remote(*given, self.pieces[number], root, out)] = number
                    if not pending:
                        break
                    start += self._finish(pending)
                    update(start)
        finally:
            for one in pending:
                with suppress(self.ray.exceptions.RayError):  # the cluster may be gone
                    self.ray.cancel(one, force=True)

    def _finish(self, pending: dict[Any, int]) -> int:
        """Name the shards that were made in the last moment; how many inputs they are of."""
        ready, _ = self.ray.wait(list(pending), num_returns=len(pending), timeout=PATIENCE)
        finished = {pending.pop(one): one for one in ready}
        failed: Exception | None = None
        count = 0
        for number, one in finished.items():
            try:
                self._keep(number, self.ray.get(one))
                count += len(self.pieces[number])
            except (self.ray.exceptions.RayError, OSError) as error:
                failed = told(error, f"shard {number} (from {self.pieces[number].source})")
        if count:
            self.manifest.write()
        if failed:
            raise failed
        return count

    def _keep(self, number: int, made: Shard) -> None:
        """Move a shard to its place, and note it."""
        file = f"shard-{number:06}.parquet" if made.file else ""
        if made.file:
            (self.aside / made.file).replace(self.manifest.folder / file)
        self.manifest.shards[number] = Shard(file, made.rows, made.sha256, made.broken)


@contextmanager
def _owned(out: Path) -> Iterator[Path]:
    """A folder of shards for this process alone, and that in it in which tasks write; gone if nothing was done."""
    make_folder(out)
    aside = out / UNFINISHED

    def refusal(holder: str) -> RunError:
        return RunError(f"{holder} embeds into {out}: wait for it, or choose another folder")

    try:
        with owning(out / LOCK, refusal):
            shutil.rmtree(aside, ignore_errors=True)  # of a driver that was lost
            aside.mkdir()
            try:
                yield aside
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    finally:
        with suppress(OSError):  # it is not empty
            out.rmdir()


def _row_bytes(embedder: Embedder) -> int:
    """About how many bytes a row of a shard takes."""
    like = next(embedder.head.parameters(), torch.zeros(0))
    with torch.no_grad():
        z = embedder.head(like.new_zeros(1, embedder.head.features))
    return int(z.pack().nbytes) + ROW_BYTES
