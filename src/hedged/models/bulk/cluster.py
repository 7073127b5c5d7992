"""A Ray cluster: joined if it answers, checked before work starts, and its errors in words."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hedged import __version__
from hedged._parallel import cores
from hedged.errors import ConfigError, HedgedError, MissingDependencyError, RunError

LOCAL = "local"
CONNECT_SECONDS, ANSWER_SECONDS = 3.0, 10.0  # that a cluster has to take a connection, and to say that it is well
NODE_SECONDS = 60.0  # that a node has to start a worker, which imports torch
SPARE_BYTES = 2**26  # that have to be left on the disk for Ray's own files


@contextmanager
def joined(address: str) -> Iterator[Any]:
    """The module `ray`, as the driver of a cluster; where this process has joined one already, of that.

    Args:
        address: Of its head, host:port, or "local".
    """
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError("--ray needs Ray, which is not installed: pip install 'hedged[ray]'") from error
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        if address == LOCAL:
            start = partial(ray.init, num_cpus=cores(), include_dashboard=False)
        else:
            _check_health(address)
            start = partial(ray.init)
        start(address=address, log_to_driver=False, logging_level=logging.ERROR)  # whatever RAY_ADDRESS says
    except (RuntimeError, OSError, ValueError) as error:
        if isinstance(error, HedgedError):
            raise
        raise _unreachable(address, " ".join(str(error).split())) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_health(address: str) -> None:
    """Refuse a cluster that does not answer: Ray itself would try for minutes, and then end this process."""
    host, _, port = address.rpartition(":")
    if not host or "/" in address or not port.isdecimal():
        raise ConfigError(f"--ray takes host:port of the head of a cluster, or {LOCAL}, got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, str(error)) from error
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise _unreachable(address, f"it does not answer within {ANSWER_SECONDS:g} seconds") from error
    if found.returncode:
        reason = (found.stderr.strip().splitlines() or ["it says that it is not well"])[-1]
        raise _unreachable(address, reason)


def _unreachable(address: str, reason: str) -> RunError:
    if address == LOCAL:
        return RunError(f"Ray cannot be started on this machine ({reason}): correct this, or embed without --ray")
    return RunError(
        f"the Ray cluster at {address} cannot be joined ({reason}): start it with `ray start --head` here and the same "
        f"versions of Ray and Python everywhere, or use --ray {LOCAL}"
    )


def cores_of(ray: Any) -> int:
    """How many cores the cluster has now.

    Args:
        ray: The module.
    """
    return int(ray.cluster_resources().get("CPU", 0))


def check_nodes(ray: Any, aside: Path, source: Path, needed: int) -> None:
    """Refuse a cluster of which a node could not do its part, before any work is done.

    Args:
        ray: The module.
        aside: The folder that every node must be able to write in.
        source: An input that every node must be able to read.
        needed: Bytes that the shards will take.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    working = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not working:
        raise RunError("the Ray cluster has no node with a core for tasks: start one with `ray start`")
    task = ray.remote(num_cpus=0, max_retries=0)(fault_of_node)
    asked = {}
    for node in working:
        here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        given = __version__, aside.absolute(), source.absolute(), needed
        asked[node["NodeManagerHostname"], node["NodeID"]] = task.options(scheduling_strategy=here).remote(*given)
    faults = []
    for (host, node_id), answer in asked.items():
        try:
            fault = ray.get(answer, timeout=NODE_SECONDS)
        except ray.exceptions.RayError as error:
            fault = _first_line(error)
        if fault:
            faults.append(f"\n  {host} (node {node_id[:8]}): {fault}")
    if faults:
        raise RunError(
            f"{len(faults):,} of {len(asked):,} nodes of the cluster cannot work on this; nothing was done"
            f"{''.join(faults)}"
        )


def fault_of_node(version: str, aside: Path, source: Path, needed: int) -> str:
    """Why the node that this runs on cannot embed; empty if it can.

    Args:
        version: Of hedged, of the driver.
        aside: The folder to write in.
        source: An input.
        needed: Bytes that the shards will take.
    """
    if version != __version__:
        return f"it has hedged {__version__}, this process has {version}: install the same"
    if not source.exists():
        return f"it does not see {source}: put the inputs where all nodes see them"
    if not aside.is_dir():
        return f"it does not see {aside.parent}: choose a folder that all nodes see with --out"
    try:
        with tempfile.TemporaryFile(dir=aside) as file:
            file.write(bytes(1))
    except OSError as error:
        return f"it cannot write in {aside.parent} ({error.strerror}): correct its permissions, or free space"
    for folder, bytes_needed in ((aside, needed), (Path(tempfile.gettempdir()), SPARE_BYTES)):
        free = shutil.disk_usage(folder).free
        if free < bytes_needed:
            return (
                f"its disk of {folder} has {free / 2**20:,.0f} MB free, and about {bytes_needed / 2**20:,.0f} MB are "
                "needed: free space, or choose another folder"
            )
    return ""


def told(error: Exception, shard: str) -> Exception:
    """What became of a task, in words; a bug stays as it is, with its traceback.

    Args:
        error: As Ray raised it.
        shard: Which shard it was.
    """
    cause = getattr(error, "cause", None)
    if isinstance(cause, HedgedError):
        return cause
    if cause is not None and not isinstance(cause, OSError | MemoryError):
        return error
    return RunError(
        f"{shard} cannot be made ({_first_line(cause or error)}); finished shards are kept. Correct this, and continue "
        "with the same command"
    )


def _first_line(error: BaseException) -> str:
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
