"""The teaser: which image it shows, and that it shows it under both models. Models of three steps stand in."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import EllipseCollection
from matplotlib.text import Annotation
from paper.exhibition import Exhibition, has_ellipses

from hedged.errors import DataError
from hedged.evaluation import CONDITIONS
from hedged.evaluation.images import images_of
from hedged.evaluation.space import Space
from hedged.metrics import Centroids
from hedged.paper import embedded_images, teaser
from hedged.paper.recipe import recipe


def grid() -> Centroids:
    """Classes where the tens are one axis and the ones the other."""
    labels = np.arange(100)
    return Centroids(labels, np.stack([labels // 10, labels % 10], axis=-1).astype(float))


def test_hidden_digits_are_those_that_the_examples_say(exhibition: Exhibition) -> None:
    evaluation = exhibition.evaluation(recipe(2, 2, "mog-1"))
    hidden = teaser.hidden_ink(evaluation)
    items = [example.item for example in embedded_images.examples(evaluation)][3:]
    assert (hidden[items] >= 0.5).tolist() == [[True, False]] * 2 + [[False, True]] * 2 + [[True, True]]
    clean, corrupt = (images_of(evaluation, c, np.array(items[:1]))[0] for c in CONDITIONS)
    assert hidden[items[0], 0] == pytest.approx(1 - corrupt[:, :28].sum() / clean[:, :28].sum())


def test_the_image_of_the_teaser_lies_on_two_readings() -> None:
    """Of seven images only 0 and 1 have two readings in question; 1 is the tighter."""
    pairs = [(17, 47), (17, 47), (17, 23), (41, 11), (47, 47), (17, 47), (17, 47)]
    means = grid().positions[np.array(pairs)] + 0.02
    variances = np.full_like(means, 1e-6)
    variances[0] = 0.1
    hidden = np.tile([0.9, 0.0], (7, 1))
    hidden[6] = 0.3
    labels = np.array([47, 47, 17, 47, 47, 87, 47])
    assert teaser.choose(means, variances, labels, grid(), hidden) == teaser.Choice(1, (17, 47))
    hidden[1] = [0.0, 0.9]  # then the 7 is hidden, and 17 is no reading of 47
    assert teaser.choose(means, variances, labels, grid(), hidden) == teaser.Choice(0, (17, 47))


def test_readings_far_apart_are_told_apart_better() -> None:
    means = grid().positions[np.array([[17, 27], [17, 87]])] + 0.1
    hidden, labels = np.tile([1.0, 0.0], (2, 1)), np.array([17, 17])
    assert teaser.choose(means, np.full_like(means, 1e-3), labels, grid(), hidden).item == 1


def test_if_no_image_qualifies_the_teaser_still_shows_two_different_numbers() -> None:
    """Nothing is hidden; image 1 is the tighter of those that lie on two classes."""
    means = grid().positions[np.array([[17, 17], [17, 86], [17, 47]])]
    means[1:] += 0.1
    found = teaser.choose(means, np.zeros_like(means), np.array([17, 17, 17]), grid(), np.zeros((3, 2)))
    assert found == teaser.Choice(1, (17, 86))


def test_without_an_image_on_two_classes_there_is_no_teaser() -> None:
    means = grid().positions[np.array([[17, 17], [35, 35]])]
    with pytest.raises(DataError, match=r"of 2 corrupt images none .* two classes.*: train the mixture for longer"):
        teaser.choose(means, np.zeros_like(means), np.array([17, 17]), grid(), np.zeros((2, 2)))


def test_the_teaser_shows_one_image_under_both_models(exhibition: Exhibition) -> None:
    point, mixture = (Space(exhibition.evaluation(config)) for config in teaser.EXHIBIT.configs())
    choice = teaser.chosen(mixture.evaluation)
    images, left, right = exhibition["teaser"].axes
    assert len(images.child_axes) == 2
    assert has_ellipses(right, *mixture.parts("corrupt", np.array([choice.item])), 2)
    assert not [c for c in left.collections if isinstance(c, EllipseCollection)]
    place = point.parts("corrupt", np.array([choice.item]))[0][0]
    assert np.asarray(left.get_lines()[-1].get_xydata()) == pytest.approx(place)
    for axes, space in ((left, point), (right, mixture)):
        words = [text.get_text() for text in axes.texts if isinstance(text, Annotation)]
        found = [teaser.match(space.evaluation, choice.item, reading) for reading in choice.readings]
        assert [word.split()[-1] for word in words] == [f"{p:.2f}" for p in found]
        assert [int(word.split()[0]) for word in words] == list(choice.readings)


def test_the_numbers_of_the_teaser_are_those_in_the_picture(exhibition: Exhibition) -> None:
    cells = exhibition["teaser"].cells
    assert [cell["model"] for cell in cells] == ["point", "point", "mog-2", "mog-2"]
    words = [t.get_text() for axes in exhibition["teaser"].axes for t in axes.texts if isinstance(t, Annotation)]
    assert [f"{cell['measured']:.2f}" for cell in cells] == [word.split()[-1] for word in words]
