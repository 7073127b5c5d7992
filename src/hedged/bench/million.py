"""The five best matches of 1,000 queries in a gallery of a million, against FAISS on the means alone; the memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import torch

from hedged.bench.memory import growth
from hedged.bench.timing import Line, side_by_side
from hedged.distributions import Gaussian
from hedged.errors import RunError
from hedged.match import MatchCurve, best_matches

ITEMS, QUERIES, OF_ONE, DIM, K = 1_000_000, 1_000, 10, 20, 5


def lines(quick: bool) -> Iterator[Line]:
    """Time and memory of the search, as ratios; none if it is to be quick.

    Args:
        quick: Whether to leave out whatever takes minutes.
    """
    if quick:
        return
    done = subprocess.run([sys.executable, "-m", __name__], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"the search of a million failed: {done.stderr.strip().splitlines()[-1]}")
    found = json.loads(done.stdout)
    what = f"top {K} of {QUERIES:,} in {ITEMS:,}, D = {DIM}"
    yield Line(f"{what}: time / that of FAISS, exact, on the means", found["ratio"], 3.0, at_most=True)
    yield Line(f"{what}: memory growth / 300 MB", found["megabytes"] / 300, 1.0, at_most=True)


@torch.no_grad()
def measure(items: int = ITEMS, queries: int = QUERIES) -> dict[str, float]:
    """Both in one process of their own, so that the memory is theirs.

    Args:
        items: In the gallery.
        queries: At once.
    """
    try:
        import faiss
    except ImportError as error:
        raise RunError("this benchmark compares with FAISS: pip install 'hedged[search]'") from error
    curve, gallery, probes = MatchCurve(), _embeddings(items, 0), _embeddings(queries, 1)
    index = faiss.IndexFlatL2(DIM)
    index.add(gallery.mean.numpy())
    best_matches(probes[:10], gallery[:1000], curve, K)  # compiled before the memory is looked at
    megabytes = growth(lambda: best_matches(probes, gallery, curve, K))
    ours, theirs = side_by_side(
        lambda: best_matches(probes, gallery, curve, K), lambda: index.search(probes.mean.numpy(), K)
    )
    return {"ratio": ours / theirs, "megabytes": megabytes}


def _embeddings(count: int, seed: int) -> Gaussian:
    """Ten items an identity around 100,000 centres; queries are of the same identities."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(ITEMS // OF_ONE, DIM, generator=torch.Generator().manual_seed(7))
    who = torch.randint(len(centres), (count,), generator=generator)
    variance = 10 ** (-2 - 2 * torch.rand(count, DIM, generator=generator))
    return Gaussian(centres[who] + variance.sqrt() * torch.randn(count, DIM, generator=generator), variance)


if __name__ == "__main__":
    print(json.dumps(measure()))
