"""Two galleries with flaws that are known: pictures of digits, and vectors that a head was fitted to."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from serve.running import Place, make_place

from hedged import Embedder, Retrofit
from hedged.data import NDigit, offline_digits
from hedged.decisions import Aims, ScoredPairs, calibrate
from hedged.decisions.policy import AbstainByRate
from hedged.search import Gallery

CLEAR = (22, 24, 25, 42, 53, 55)  # numbers that the digits' model is sure of, and tells apart
HIDDEN = 14  # of which some images are kept as 55
FITTED, KEPT, EACH, FEATURES = 60, 12, 6, 48


def clearest(embedder: Embedder, number: int, most: int) -> NDArray[np.uint8]:
    """The images of a number, of a hundred, that the model is surest of; the surest first."""
    digits = offline_digits("test")
    of_each = [torch.nonzero(digits.labels == digit).flatten().tolist()[:10] for digit in divmod(number, 10)]
    images = NDigit(digits, torch.tensor(list(itertools.product(*of_each)))).clean()
    with torch.no_grad():
        order = embedder.uncertainty(embedder.embed(images.numpy())).argsort().numpy()
    found: NDArray[np.uint8] = images.numpy()[order[:most]]
    return found


def make_digits(folder: Path) -> Place:
    """Clear images of numbers, four of each; an empty one among the 22, and four of 14 among the 55."""
    place = make_place(folder)
    embedder = Embedder.load(place.run)
    for path in (Path(place.store), *place.pictures.glob("*.png")):
        path.unlink()
    images = {f"{number}-{i}.png": image for number in CLEAR for i, image in enumerate(clearest(embedder, number, 4))}
    images |= {f"55-{i + 4}.png": image for i, image in enumerate(clearest(embedder, HIDDEN, 4))}
    images["22-blank.png"] = np.zeros((28, 56), np.uint8)
    for name, image in images.items():
        Image.fromarray(image).save(place.pictures / name)
    paths = [place.pictures / name for name in images]
    with Gallery.create(place.store, embedder) as gallery:
        gallery.add(paths, labels=[name[:2] for name in images], ids=list(images))
    return place


def made_up(whose: NDArray[np.int64], seed: int) -> NDArray[np.float32]:
    """Vectors of made-up identities: near their own centre, far from the others."""
    centres = np.random.default_rng(99).normal(size=(FITTED + KEPT, FEATURES))[whose]
    return (centres + 0.3 * np.random.default_rng(seed).normal(size=centres.shape)).astype(np.float32)


def make_vectors(folder: Path) -> Place:
    """A head on vectors, calibrated, and a store of identities it has not seen, with a flaw of each kind."""
    run, pictures = folder / "head", folder / "pictures"
    pictures.mkdir()
    whose = np.repeat(np.arange(FITTED), 8)
    head = Retrofit(branches="unit+learnt", steps=50).fit(made_up(whose, 0), whose)
    head.save(run)
    embedder = Embedder.load(run)
    z = embedder.embed(made_up(whose, 1))
    with torch.no_grad():
        matrix = embedder.match_model.matrix(z, z)
    first, second = np.triu_indices(len(whose), 1)
    pairs = ScoredPairs.of(matrix[first, second].numpy(), whose[first], whose[second])
    found = calibrate(pairs, embedder.fingerprint(), Aims(0.1, AbstainByRate(0.2)))
    found.decider.save(run, found.report())
    whose = np.repeat(np.arange(FITTED, FITTED + KEPT), EACH)
    rows: dict[str, tuple[str, NDArray[np.float32]]] = {}
    for i, x in enumerate(made_up(whose, 2)):
        label = f"p{i // EACH:02}"
        rows[f"{label}-{i % EACH}"] = (label, x)
    strangers = made_up(np.arange(3), 3)
    rows["wrong"] = ("p05", made_up(np.array([FITTED]), 4)[0])
    rows["twin-1"], rows["twin-2"] = ("Rex", strangers[0]), ("Max", strangers[0])
    rows["blank"] = ("p07", made_up(whose, 2).mean(0))
    rows |= {f"p09-{EACH + i}": ("p09", x) for i, x in enumerate(made_up(np.array([2] * 4), 5))}
    with Gallery.create(folder / "people.db", embedder) as gallery:
        gallery.add(np.stack([x for _, x in rows.values()]), labels=[y for y, _ in rows.values()], ids=list(rows))
    return Place(run, folder / "people.db", pictures)
