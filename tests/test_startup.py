"""A command that is over in a moment starts quickly: what it can do without is not imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from hedged import Gaussian, MatchCurve, _startup, match_probability
from hedged.models import Embedder
from hedged.search import Header, Rows, create_store

NEVER = ("numba", "scipy", "sklearn", "sympy", "pandas", "matplotlib", "rich", "torch._prims", "torch._dynamo")
COMMANDS = """
import contextlib, io, sys
from hedged.cli import main

def loaded(*words):
    sys.argv = ["hedged", *words]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main()
    assert out.getvalue(), words
    return [name for name in NAMES if name in sys.modules]

assert loaded("index", "info", "a.db") == [], loaded("index", "info", "a.db")
assert loaded("match", "hedged:ndigit-2d", "a.png", "b.png") == ["torch"], sorted(sys.modules)
assert loaded("search", "hedged:ndigit-2d", "a.db", "a.png") == ["torch"], sorted(sys.modules)

import torch
from hedged._startup import load_the_rest
load_the_rest()
network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4)).to("meta")
assert network(torch.ones(1, 1, 8, 8, device="meta")).shape == (1, 4, 6, 6)
""".replace("NAMES", repr(("torch", "pydantic.v1", *NEVER)))


def test_info_needs_no_torch_and_match_and_search_nothing_but_torch(tmp_path: Path) -> None:
    for name in ("a", "b"):
        Image.new("L", (56, 28), "white").save(tmp_path / f"{name}.png")
    e = Embedder.load("hedged:ndigit-2d")
    with create_store(str(tmp_path / "a.db"), Header.of(e)) as store:
        store.add(Rows(["a"], e.embed(tmp_path / "a.png"), e.fingerprint()))
    done = subprocess.run([sys.executable, "-c", COMMANDS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_few_pairs_without_loops_are_those_with_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    z = Gaussian(torch.randn(64, 5), torch.rand(64, 5) + 0.01)
    compiled = match_probability(z[:32], z[32:], MatchCurve(2.0, 1.0))
    chosen = torch.randint(-1, 32, (32, 7))
    ranked = MatchCurve(2.0, 1.0).chosen_logits(z[:32], z[32:], chosen)
    monkeypatch.setattr("hedged.match._closed_form.elementwise.needs_loops", lambda terms: False)
    monkeypatch.setattr("hedged.match.estimators.needs_loops", lambda terms: False)
    plain = match_probability(z[:32], z[32:], MatchCurve(2.0, 1.0))
    torch.testing.assert_close(plain, compiled, rtol=1e-5, atol=1e-6)
    again = MatchCurve(2.0, 1.0).chosen_logits(z[:32], z[32:], chosen)
    np.testing.assert_allclose(again, ranked, rtol=1e-5, atol=1e-6)


def test_loops_are_loaded_once_the_work_amounts_to_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(_startup, "_budget", _startup._Budget(100))
    assert [_startup.needs_loops(40) for _ in range(4)] == [False, False, True, True]
    monkeypatch.setattr(_startup, "_budget", _startup._Budget(100))
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert _startup.needs_loops(1)
    assert _startup._Budget().covers(1) is False


LATER = "registered = True\n"
TORCHES = {  # what torch might do with the module that is left out: what it is after a quick start, and then
    "imports it": ("from torch import _meta_registrations", False, True),
    "imports a name of it": ("from torch._meta_registrations import registered", True, True),
    "uses it": ("import torch._meta_registrations\nassert torch._meta_registrations.registered", True, True),
    "imports it late": ("", False, True),
    "no longer has it": (None, False, False),
}
QUICKLY = """
import sys
from hedged import _startup
_startup.start_quickly()
import torch
name = "torch._meta_registrations"
assert not isinstance(sys.modules.get(name), _startup._Later)
assert (name in sys.modules, hasattr(torch, "_meta_registrations")) == (AT_FIRST, AT_FIRST)
_startup.load_the_rest()
assert (name in sys.modules) == THEN
assert not THEN or torch._meta_registrations.registered
"""


@pytest.mark.parametrize("kind", TORCHES)
def test_torch_may_do_without_what_is_left_out_or_need_it_at_once(kind: str, tmp_path: Path) -> None:
    imports, at_first, then = TORCHES[kind]
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(imports or "")
    if imports is not None:
        (tmp_path / "torch" / "_meta_registrations.py").write_text(LATER)
    program = f"AT_FIRST, THEN = {at_first}, {then}\n{QUICKLY}"
    package = Path(_startup.__file__).parents[1]
    paths = os.pathsep.join([str(tmp_path), str(package), *sys.path])
    command = [sys.executable, "-c", program]
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
