"""The pet experiment on a few small pictures: measured as a slow reading of its definition does, drawn, told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from paper.kennel import TEST_PHOTOS, TESTED, TINY_PETS, write_dogs
from PIL import Image

from hedged.errors import ConfigError, DataError
from hedged.match import match_logit, self_mismatch
from hedged.paper.page import load_cells, write_page
from hedged.paper.pet_measurements import PetMeasures, measure_pets
from hedged.paper.pets import EXHIBIT, HEDGED, POINT, Pets
from hedged.paper.shelf import PETS, Shelf
from hedged.training import build_data

PHOTOS = len(TESTED) * TEST_PHOTOS
BINS = 20
PAIRS = PHOTOS * (PHOTOS - 1) // 2


@pytest.fixture(scope="module")
def _surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hedged.paper.pets._file", lambda: TINY_PETS)
        patch.setenv("HEDGED_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def pets(_surroundings: None, tmp_path_factory: pytest.TempPathFactory) -> Pets:
    return EXHIBIT.of_photos(write_dogs(tmp_path_factory.mktemp("dogs")))


@pytest.fixture(scope="module")
def shelf(pets: Pets, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    filled = Shelf(tmp_path_factory.mktemp("models"))
    for need in pets.needs({}):
        filled.fill(need)
    return filled


@pytest.fixture(scope="module")
def folder(pets: Pets, shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    assert {path.name for path in pets.write(shelf, made, {})} == {"pets.png", "pets.json", "pets-variants.json"}
    return made


def test_a_point_and_a_gaussian_train_the_same_way_for_three_seeds(pets: Pets) -> None:
    configs = pets.configs()
    assert len(configs) == 6
    for seed in range(3):
        point, hedged = (pets.config(model, seed) for model in (POINT, HEDGED))
        assert (point.data, point.train) == (hedged.data, hedged.train)
        assert (point.model.head, hedged.model.head) == ("point", "gaussian")
        assert point.loss.model_copy(update={"kind": "hedged"}) == hedged.loss


def test_where_the_photos_are_does_not_matter_to_a_model(pets: Pets) -> None:
    assert [c.digest() for c in EXHIBIT.configs()] == [c.digest() for c in pets.configs()]


def test_all_pairs_of_tested_dogs_are_measured_as_a_loop_over_them_does(pets: Pets, shelf: Shelf) -> None:
    config = pets.config(HEDGED, 0)
    found = PetMeasures.of(shelf.measured(config, PETS))
    assert (found.pets, found.photos, found.pairs) == (len(TESTED), PHOTOS, PAIRS)
    assert found.bins is not None
    embedder, test = shelf.embedder(config), build_data(config).test["test"]
    z = embedder.embed(test.clean())
    labels, eta = test.labels.tolist(), self_mismatch(z, embedder.curve).tolist()
    right: dict[bool, list[bool]] = {True: [], False: []}
    kept: dict[bool, list[bool]] = {True: [], False: []}
    low = sorted(eta)[: round(0.8 * PHOTOS)][-1]
    with torch.no_grad():
        rows = [match_logit(z[i], z, embedder.curve).tolist() for i in range(PHOTOS)]
    for i, j in combinations(range(PHOTOS), 2):
        match = labels[i] == labels[j]
        right[match].append((rows[i][j] >= found.threshold) == match)
        if max(eta[i], eta[j]) <= low:
            kept[match].append(right[match][-1])
    assert len(right[True]) == found.matches
    assert found.accuracy == pytest.approx((np.mean(right[True]) + np.mean(right[False])) / 2, abs=2e-3)
    assert found.bins.kept_accuracy == pytest.approx((np.mean(kept[True]) + np.mean(kept[False])) / 2, abs=4e-3)


def test_the_threshold_is_chosen_without_the_tested_dogs(pets: Pets, shelf: Shelf) -> None:
    config = pets.config(HEDGED, 0)
    splits = build_data(config)
    tested = {splits.test["test"].name(label) for label in splits.test["test"].labels.tolist()}
    assert tested == {str(dog) for dog in TESTED}
    assert splits.validation is not None
    chosen_on = {splits.validation.name(label) for label in splits.validation.labels.tolist()}
    trained_on = {splits.train.name(label) for label in splits.train.labels.tolist()}
    assert not tested & (chosen_on | trained_on)
    assert not chosen_on & trained_on


def test_bins_and_spreads_hold_all_their_pairs(pets: Pets, shelf: Shelf) -> None:
    bins = PetMeasures.of(shelf.measured(pets.config(HEDGED, 1), PETS)).bins
    assert bins is not None
    assert len(bins.accuracy) == len(bins.uncertainty) == BINS
    assert list(bins.uncertainty) == sorted(bins.uncertainty)
    for spread in (bins.lowest, bins.highest):
        assert sum(spread.same) + sum(spread.different) in (PAIRS // BINS, PAIRS // BINS + 1)


def test_a_point_has_no_bins(pets: Pets, shelf: Shelf) -> None:
    assert PetMeasures.of(shelf.measured(pets.config(POINT, 0), PETS)).bins is None


def test_measures_survive_as_plain_data(pets: Pets, shelf: Shelf) -> None:
    content = shelf.measured(pets.config(HEDGED, 2), PETS)
    assert asdict(PetMeasures.of(content)) == {key: value for key, value in content.items() if key != "version"}


def test_cells_are_as_the_design_has_them(folder: Path) -> None:
    cells = load_cells(folder, "pets")
    named = [(cell["model"], cell["metric"], cell.get("correlation"), cell["paper"]) for cell in cells]
    assert named == [
        ("point", "balanced_accuracy", None, 0.777),
        ("mog-1", "balanced_accuracy", None, None),
        ("mog-1", "bin_correlation", "kendall", None),
        ("mog-1", "bin_correlation", "pearson", 0.995),
    ]
    for cell in (*cells, *load_cells(folder, "pets-variants")):
        assert (cell["seeds"], cell["photos"], cell["steps"]) == (3, PHOTOS, 40)
        assert -1 <= cell["measured"] <= 1


def test_the_picture_has_three_panels_of_a_page_width(pets: Pets, shelf: Shelf, folder: Path) -> None:
    with Image.open(folder / "pets.png") as picture:
        assert picture.width == 1400
    axes = pets.draw(shelf).axes
    assert [one.get_title()[:3] for one in axes] == ["(a)", "(b)", "(c)"]
    curve = next(line for line in axes[0].lines if line.get_marker() == "o")
    seeds = [PetMeasures.of(shelf.measured(pets.config(HEDGED, seed), PETS)).bins for seed in range(3)]
    assert np.allclose(curve.get_ydata(), np.mean([bins.accuracy for bins in seeds if bins], axis=0))


def test_the_page_tells_of_the_pets(shelf: Shelf, folder: Path) -> None:
    page = write_page(shelf, folder).read_text()
    assert "`hedged paper run pets --data DIR`" in page
    assert f"{len(TESTED)} dogs of DogFaceNet" in page
    assert "(pets.png)" in page
    first, _, _ = page.partition("## In short")
    assert write_page(None, folder).read_text().partition("## In short")[0] == first


def test_without_validation_dogs_there_is_no_threshold(pets: Pets, shelf: Shelf) -> None:
    config = pets.config(HEDGED, 0)
    data = config.data.model_copy(update={"validation_share": 0.0})
    splits = build_data(config.model_copy(update={"data": data}))
    with pytest.raises(DataError, match="no validation pets to choose a threshold on"):
        measure_pets(shelf.embedder(config), splits)


def test_only_and_photos_are_refused_where_they_mean_nothing(pets: Pets, tmp_path: Path) -> None:
    from hedged.paper.catalogue import exhibit

    with pytest.raises(ConfigError, match="pets is made as a whole"):
        pets.needs({"model": "point"})
    with pytest.raises(ConfigError, match="main-task is made of digits"):
        exhibit("main-task").of_photos(tmp_path)
