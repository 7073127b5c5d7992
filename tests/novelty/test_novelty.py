"""Novelty: the score against its formula, the percentile against counting, and what a model does with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hedged._tensors import load_tensors, save_tensors
from hedged.bench.uncertainty.sets import offline_digits
from hedged.errors import DataError, RunError, ShapeError
from hedged.match import MatchCurve
from hedged.metrics import roc_auc
from hedged.models import Embedder, GaussianHead
from hedged.models.backbones import Vectors
from hedged.novelty import IdentityGaussians, Novelty, Percentile
from hedged.novelty.gaussians import AXES, Moments

Floats = NDArray[np.float64]


def clusters(identities: int, each: int, width: int = 12, seed: int = 0) -> tuple[Floats, NDArray[np.intp]]:
    """Features of identities, all from one population."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(identities), each)
    return 2 + rng.normal(size=(identities, width))[y] + 0.3 * rng.normal(size=(len(y), width)), y


def slow_score(x: Floats, y: NDArray[np.intp], new: Floats) -> Floats:
    """The formula of `IdentityGaussians`, with full covariances and no axes."""
    f, g = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, new))
    means = np.stack([f[y == c].mean(0) for c in np.unique(y)])
    residual = f - means[np.searchsorted(np.unique(y), y)]
    within = residual.T @ residual / (len(f) - len(means))
    total = np.cov(f, rowvar=False, bias=True)
    eye = np.eye(f.shape[1])
    w, t = (np.linalg.inv(cov + 0.3 * np.trace(cov) / len(cov) * eye) for cov in (within, total))
    of_identity = np.stack([np.einsum("ni,ij,nj->n", g - m, w, g - m) for m in means])
    centred = g - f.mean(0)
    length, new_length = (np.log(np.linalg.norm(v, axis=1)) for v in (x, new))
    usual = np.array([length[y == c].mean() for c in np.unique(y)])
    spread = max(np.square(length - usual[np.searchsorted(np.unique(y), y)]).sum() / (len(f) - len(means)), 1e-4)
    of_identity += np.square(new_length - usual[:, None]) / spread
    return np.asarray(of_identity.min(0) - np.einsum("ni,ij,nj->n", centred, t, centred))


@pytest.mark.parametrize("identities", [2, 5, 40])
def test_the_score_is_the_formula(identities: int) -> None:
    x, y = clusters(identities, 7)
    new = np.concatenate([x[:20], np.random.default_rng(1).normal(size=(20, 12))])
    found = IdentityGaussians.fitted(Moments.of(x, y, identities)).score(torch.tensor(new))
    np.testing.assert_allclose(found, slow_score(x, y, new), rtol=1e-3, atol=1e-3)


def test_beyond_the_axes_only_the_length_counts() -> None:
    rng = np.random.default_rng(0)
    width, y = AXES + 60, np.repeat(np.arange(30), 20)
    x = 1 + rng.normal(size=(30, width))[y] * np.linspace(3, 0.01, width) + 0.1 * rng.normal(size=(len(y), width))
    new = np.concatenate([x[::3], 1 + rng.normal(size=(200, width))])
    fast = IdentityGaussians.fitted(Moments.of(x, y, 30)).score(torch.tensor(new)).numpy()
    slow = slow_score(x, y, new)
    assert np.corrcoef(fast, slow)[0, 1] > 0.99
    assert roc_auc(fast, np.arange(len(new)) >= 200) > 0.99


def test_moments_of_parts_add_up() -> None:
    x, y = clusters(6, 5)
    everything, some = Moments.of(x, y, 6), Moments.of(x[y < 2], y[y < 2], 6)
    rest = Moments.of(x[y >= 2], y[y >= 2], 6)
    for name in ("counts", "sums", "squares", "lengths", "square_lengths"):
        np.testing.assert_allclose(getattr(everything.without(some), name), getattr(rest, name), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), factor=st.floats(0.01, 100))
def test_it_does_not_depend_on_units_names_or_axes(seed: int, factor: float) -> None:
    x, y = clusters(6, 6, seed=seed)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    new = np.concatenate([x[:4], rng.normal(size=(4, 12))])
    plain = IdentityGaussians.fitted(Moments.of(x, y, 6)).score(torch.tensor(new))
    renamed = IdentityGaussians.fitted(Moments.of(x, rng.permutation(6)[y], 6)).score(torch.tensor(new))
    turned = IdentityGaussians.fitted(Moments.of(factor * x @ turn, y, 6)).score(torch.tensor(factor * new @ turn))
    np.testing.assert_allclose(plain, renamed, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(plain, turned, rtol=1e-3, atol=1e-2)


def test_features_of_another_length_are_novel_unless_all_are_of_one() -> None:
    x, y = clusters(40, 10)
    x *= np.exp(0.1 * np.random.default_rng(3).normal(size=(len(y), 1)))
    novelty = Novelty.fitted(x, y)
    assert novelty(torch.tensor(x / 3)).mean() > 0.95 > novelty(torch.tensor(x)).mean() + 0.3
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    rounded = torch.tensor(unit.astype(np.float32) * np.float32(1 + 1e-6))
    steady = Novelty.fitted(unit, y)
    np.testing.assert_allclose(steady(rounded), steady(torch.tensor(unit)), atol=0.02)


def test_the_length_counts_a_quarter_of_the_interquartile_range() -> None:
    x, y = clusters(40, 10)
    x *= np.exp(0.3 * np.random.default_rng(3).normal(size=(len(y), 1)))
    plain, weighed = IdentityGaussians.fitted(Moments.of(x, y, 40)), Novelty.fitted(x, y).gaussians
    by_direction = plain.weighing_length(0).score(torch.tensor(x), torch.tensor(y))
    unit = torch.tensor(x / np.linalg.norm(x, axis=1, keepdims=True))
    torch.testing.assert_close(
        by_direction, plain.weighing_length(0).score(unit, torch.tensor(y)), rtol=1e-3, atol=1e-3
    )
    upper, lower = np.quantile(by_direction, (0.75, 0.25))
    np.testing.assert_allclose((weighed.length[1] / plain.length[1]) ** 2, (upper - lower) / 4, rtol=1e-4)
    again = plain.weighing_length((upper - lower) / 4).score(torch.tensor(x))
    torch.testing.assert_close(weighed.score(torch.tensor(x)), again, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("bright", [False, True])
def test_the_length_neither_drowns_the_directions_nor_is_drowned(bright: bool) -> None:
    tuned = offline_digits().for_tuning
    x = np.concatenate([tuned.train.clean, tuned.train.poor])
    novel = (
        tuned.test.clean * 3 if bright else np.rot90(tuned.test.clean.reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)
    )
    novelty = Novelty.fitted(x, np.tile(tuned.train.y, 2))
    kept = ~np.isin(tuned.test.y, [0, 8])  # on their side they are none
    told = [novelty(torch.tensor(np.ascontiguousarray(v))).numpy() for v in (tuned.test.clean, novel[kept])]
    assert roc_auc(np.concatenate(told), np.arange(sum(map(len, told))) >= len(told[0])) > 0.985


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.lists(st.floats(-1e7, 1e7), min_size=2, max_size=20))
def test_percentiles_are_counted_and_never_fall(held_out: list[float], new: list[float]) -> None:
    found = Percentile.fitted(np.array(held_out)).of(torch.tensor(new, dtype=torch.float64)).numpy()
    assert ((found > 0) & (found < 1)).all()
    order = np.argsort(new)
    assert (np.diff(found[order]) >= -1e-12).all()
    if len(set(held_out)) < len(held_out):
        return  # ties share the middle of their ranks
    for value, share in zip(new, found, strict=True):
        below = (np.array(held_out) < value).sum()
        assert below / (len(held_out) + 1) - 1e-9 <= share <= (below + 1) / (len(held_out) + 1) + 1e-9


def test_far_scores_keep_their_order() -> None:
    found = Percentile.fitted(np.random.default_rng(0).normal(size=5000))
    assert len(found.scores) <= 512
    far = found.of(torch.tensor([4.0, 10.0, 1e3, 1e6, 1e9], dtype=torch.float64))
    assert (far.diff() > 0).all()
    assert far[0] > 0.999


def test_new_identities_are_as_novel_as_held_out_ones() -> None:
    x, y = clusters(300, 8)
    novelty = Novelty.fitted(x[y < 200], y[y < 200])
    assert novelty.held_out == "identities"
    of_new = np.sort(novelty(torch.tensor(x[y >= 200])).numpy())
    assert np.abs(of_new - (np.arange(800) + 0.5) / 800).max() < 0.12  # Kolmogorov–Smirnov, 100 identities
    of_seen = novelty(torch.tensor(x[y < 200])).numpy()
    assert of_seen.mean() < of_new.mean()
    other = np.random.default_rng(9).normal(size=(200, 12))
    assert roc_auc(np.concatenate([of_new, novelty(torch.tensor(other)).numpy()]), np.arange(1000) >= 800) > 0.9


def test_of_few_identities_inputs_are_held_out() -> None:
    x, y = clusters(5, 400)
    novelty = Novelty.fitted(x[::2], y[::2])
    assert novelty.held_out == "inputs"
    of_new = np.sort(novelty(torch.tensor(x[1::2])).numpy())
    assert np.abs(of_new - (np.arange(1000) + 0.5) / 1000).max() < 0.08


def test_what_cannot_be_fitted_is_told() -> None:
    x, y = clusters(4, 3)
    with pytest.raises(DataError, match="two identities or more"):
        Novelty.fitted(x, np.zeros(len(x)))
    with pytest.raises(DataError, match="two inputs or more"):
        Novelty.fitted(x, np.arange(len(x)))
    with pytest.raises(DataError, match="NaN or infinite"):
        Novelty.fitted(np.where(x > 2, np.nan, x), y)
    with pytest.raises(ShapeError, match=r"got \(12,\) and \(12,\)"):
        Novelty.fitted(x[:, 0], y)
    with pytest.raises(ShapeError, match=r"\(n, 12\), got \(12, 5\)"):
        Novelty.fitted(x, y)(torch.tensor(x[:, :5]))


@pytest.mark.parametrize("each", [2, 3])
def test_the_least_that_can_be_fitted_is_finite(each: int) -> None:
    x, y = clusters(2, each)
    found = Novelty.fitted(x, y)(torch.tensor(np.concatenate([x, 0 * x])))
    assert torch.isfinite(found).all()


def model(width: int = 12) -> Embedder:
    torch.manual_seed(0)
    return Embedder(Vectors(width), GaussianHead(width, 3), MatchCurve())


def test_an_embedder_tells_novelty_and_keeps_it(tmp_path: Path) -> None:
    x, y = clusters(40, 5)
    embedder = model()
    before = embedder.fingerprint()
    assert embedder.embed_with_novelty(x)[1] is None
    with pytest.raises(RunError, match="novelty: unknown, fit it with `hedged novelty RUN`"):
        embedder.novelty(x)
    embedder.novelty_model = Novelty.fitted(x, y)
    assert embedder.fingerprint() == before  # stores and calibrations of the model stay its own
    z, novelty = embedder.embed_with_novelty(x, batch_size=7)
    assert novelty is not None
    torch.testing.assert_close(z.mean, embedder.embed(x).mean)
    torch.testing.assert_close(novelty, embedder.novelty(x), atol=1e-5, rtol=0)
    embedder.save(tmp_path / "run")
    again = Embedder.load(tmp_path / "run")
    assert torch.equal(again.novelty(x), embedder.novelty(x))
    torch.testing.assert_close(again.half().novelty(x).float(), embedder.novelty(x).float(), atol=0.05, rtol=0)
    again.save(tmp_path / "half")
    assert Embedder.load(tmp_path / "half").novelty_model is not None


def test_models_without_novelty_open_and_strange_files_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    x, y = clusters(40, 5)
    embedder = model()
    embedder.save(tmp_path)
    assert Embedder.load(tmp_path).novelty_model is None
    embedder.novelty_model = Novelty.fitted(x, y)
    embedder.novelty_model.save(tmp_path, "0123456789abcdef")  # of another model
    assert Embedder.load(tmp_path).novelty_model is None
    assert "is of another model and is not used: fit it with `hedged novelty" in caplog.text
    embedder.save(tmp_path)
    tensors, words = load_tensors(tmp_path / "novelty.safetensors")
    for change, why in (
        ({"means": tensors["means"][:, :3]}, "its means are not finite numbers of shape"),
        ({"centre": tensors["centre"] * float("nan")}, "its centre are not finite"),
        ({"shares": tensors["shares"][:3]}, "3 shares"),
    ):
        save_tensors(tmp_path / "novelty.safetensors", {**tensors, **change}, words)
        with pytest.raises(RunError, match=why):
            Embedder.load(tmp_path)
    save_tensors(tmp_path / "novelty.safetensors", tensors, {**words, "format": "9"})
    with pytest.raises(RunError, match="format '9'"):
        Embedder.load(tmp_path)
    (tmp_path / "novelty.safetensors").write_bytes(b"short")
    with pytest.raises(RunError, match="remove it, and fit novelty again"):
        Embedder.load(tmp_path)
    embedder.novelty_model = None
    embedder.save(tmp_path)  # which leaves nothing of it behind
    assert Embedder.load(tmp_path).novelty_model is None
