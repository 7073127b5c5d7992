"""Training by several processes: each embeds its share of a batch, and all pairs of the whole batch count.

`torchrun --nproc-per-node 2 --no-python hedged train …`, or any launcher that sets up `torch.distributed`, starts them.
Each draws the same batch and embeds its part of it. Embeddings are gathered, so that every process works out the same
loss of the whole batch, and sends the slopes of its own part through its network; the gradients of all are then
averaged. So they are those of one process, up to rounding, but for batch normalisation: there, each process normalises
its own part, and running statistics are averaged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, final

import torch
from torch import Tensor, distributed, nn
from torch.distributed.distributed_c10d import PrefixStore, rendezvous  # type: ignore[attr-defined]

from hedged.distributions import Distribution
from hedged.errors import ConfigError, RunError, ShapeError

PATIENCE = timedelta(days=1)  # for the first process to open the data; one that is lost is noticed at once
LAUNCHED = "WORLD_SIZE"  # the variable of the environment by which launchers tell how many processes there are
RESTARTS = "TORCHELASTIC_RESTART_COUNT"

AnyDistribution = TypeVar("AnyDistribution", bound=Distribution)


@final
@dataclass(frozen=True)
class Processes:
    """The processes that train one model, and which of them this is; alone unless `torch.distributed` is set up.

    Args:
        rank: Which one this is; the one of rank 0 writes the run folder, the log and the progress.
        count: How many there are.
    """

    rank: int = 0
    count: int = 1

    @classmethod
    @contextmanager
    def joined(cls) -> Iterator[Processes]:
        """The processes of `torch.distributed`, which is set up if a launcher such as torchrun started this one."""
        if not distributed.is_available() or (not distributed.is_initialized() and not _is_launched()):
            yield cls()
            return
        is_ours = not distributed.is_initialized()
        if is_ours:
            with _lost_told():
                store, rank, count = next(iter(rendezvous("env://", timeout=PATIENCE)))
                attempt = PrefixStore(f"hedged/{os.environ.get(RESTARTS, '0')}", store)  # not of one before
                distributed.init_process_group(_backend(), store=attempt, rank=rank, world_size=count, timeout=PATIENCE)
        processes = cls(distributed.get_rank(), distributed.get_world_size())
        logger = logging.getLogger("hedged")
        before = logger.level
        try:
            if processes.rank:
                logger.setLevel(logging.ERROR)  # what the first one says is enough
            yield processes
        finally:
            logger.setLevel(before)
            if is_ours:
                distributed.destroy_process_group()

    @property
    def is_first(self) -> bool:
        """Whether this process writes."""
        return self.rank == 0

    @property
    def is_restarted(self) -> bool:
        """Whether the launcher started the processes anew, after one of them was lost."""
        return self.count > 1 and int(os.environ.get(RESTARTS, "0")) > 0

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """What the first process does while the others wait, and then they: downloads are made once."""
        if not self.is_first:
            self._wait_for_first()
        done = False
        try:
            yield
            done = True
        finally:
            if self.is_first:
                self._tell_others(done)

    def _tell_others(self, done: bool) -> None:
        if self.count > 1:
            with _lost_told():
                distributed.broadcast(torch.tensor(int(done), device=_device()), 0)

    def _wait_for_first(self) -> None:
        done = torch.tensor(0, device=_device())
        with _lost_told():
            distributed.broadcast(done, 0)
        if not done:
            raise RunError("the first process of the training failed: its message says why")

    def check(self, batch_size: int) -> None:
        """Refuse batches of which a process would get nothing.

        Args:
            batch_size: How many inputs a batch has.
        """
        if batch_size < self.count:
            raise ConfigError(
                f"train.batch_size = {batch_size} is less than the {self.count} processes: start at most "
                f"{batch_size}, or raise it"
            )

    def share(self, x: Tensor) -> Tensor:
        """The part of a batch that this process embeds; parts differ by one input at most.

        Args:
            x: The whole batch.
        """
        return x.tensor_split(self.count)[self.rank]

    def together(self, z: AnyDistribution) -> AnyDistribution:
        """The embeddings of all processes, in the order of their ranks, with gradients.

        Args:
            z: Those of this process.
        """
        if self.count == 1:
            return z
        sizes = self._sizes(len(z))
        return z._map(lambda tensor: _gathered(tensor, sizes))

    def _sizes(self, own: int) -> list[int]:
        sizes = torch.zeros(self.count, dtype=torch.int64, device=_device())
        sizes[self.rank] = own
        with _lost_told():
            distributed.all_reduce(sizes)
        return [int(size) for size in sizes.tolist()]

    def begin_alike(self, module: nn.Module) -> None:
        """Give all processes the parameters and buffers of the first.

        Args:
            module: What is trained.
        """
        if self.count > 1:
            with _lost_told(), torch.no_grad():
                for tensor in (*module.parameters(), *module.buffers()):
                    distributed.broadcast(tensor, 0)

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace gradients by their mean over all processes.

        Args:
            parameters: Whose.
        """
        self._average([p.grad for p in parameters if p.grad is not None])

    def average_buffers(self, module: nn.Module) -> None:
        """Replace buffers, such as running statistics, by their mean over all processes.

        Args:
            module: Whose.
        """
        self._average([buffer for buffer in module.buffers() if buffer.is_floating_point()])

    @torch.no_grad()
    def _average(self, tensors: list[Tensor]) -> None:
        if self.count == 1 or not tensors:
            return
        for dtype in {x.dtype for x in tensors}:
            some = [x for x in tensors if x.dtype == dtype]
            flat = torch.cat([x.flatten() for x in some])
            with _lost_told():
                distributed.all_reduce(flat)
            flat /= self.count
            parts = torch.split(flat, [x.numel() for x in some])
            for x, mean in zip(some, parts, strict=True):
                x.copy_(mean.view(x.shape))

    def any(self, asked: bool) -> bool:
        """Whether any process asks for something, which then all know.

        Args:
            asked: Whether this one does.
        """
        if self.count == 1:
            return asked
        flag = torch.tensor(int(asked), device=_device())
        with _lost_told():
            distributed.all_reduce(flag)
        return bool(flag)


ALONE = Processes()


def gather(z: AnyDistribution, labels: Tensor) -> tuple[AnyDistribution, Tensor]:
    """The embeddings and labels of all processes, for a training loop of your own: `loss(*gather(z, labels))`.

    Every process must work out the same loss of what it gets. Gradients are those of one process that embeds the whole
    batch, once they are averaged over all processes, as `DistributedDataParallel` does. The loss itself and the
    parameters of its match model stay outside of it: their gradients are whole in every process.

    Args:
        z: The embeddings of this process; the numbers of them may differ.
        labels: Their classes.

    >>> from hedged import Point
    >>> z, labels = gather(Point(torch.zeros(3, 2)), torch.tensor([0, 0, 1]))  # one process alone
    >>> len(z)
    3
    """
    if labels.shape != z.batch_shape:
        raise ShapeError(f"got {z!r} and labels of shape {tuple(labels.shape)}: give one label for each embedding")
    if not distributed.is_available() or not distributed.is_initialized():
        return z, labels
    processes = Processes(distributed.get_rank(), distributed.get_world_size())
    return processes.together(z), _gathered(labels, processes._sizes(len(labels)))


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: list[int]) -> Tensor:
        rank = distributed.get_rank()
        ctx.first, ctx.last, ctx.count = sum(sizes[:rank]), sum(sizes[: rank + 1]), len(sizes)
        own = x.new_zeros(max(sizes), *x.shape[1:])
        own[: len(x)] = x
        parts = [torch.empty_like(own) for _ in sizes]
        with _lost_told():
            distributed.all_gather(parts, own)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        """The slopes of the own part, times the number of processes, by which averaging divides."""
        return grads[0][ctx.first : ctx.last] * ctx.count, None


def _gathered(x: Tensor, sizes: list[int]) -> Tensor:
    whole: Tensor = _Gather.apply(x, sizes)  # type: ignore[no-untyped-call]
    return whole


def _backend() -> str:
    """By which processes talk: gloo about what is on CPUs, and nccl about what is on GPUs, if there are any."""
    return "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and distributed.is_nccl_available() else "gloo"


def _device() -> torch.device:
    """Where the numbers are that processes tell each other: nccl alone, which others may have set up, needs a GPU."""
    is_on_gpu = distributed.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if is_on_gpu else torch.device("cpu")


def _is_launched() -> bool:
    return int(os.environ.get(LAUNCHED, "1")) > 1


@contextmanager
def _lost_told() -> Iterator[None]:
    """Errors of communication in words."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunError(
            f"another process of the training is lost or cannot be reached ({reason}): continue with --resume; "
            "`torchrun --max-restarts 3` does so by itself"
        ) from error
