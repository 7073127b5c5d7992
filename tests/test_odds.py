"""Probabilities and log-odds are those of scipy.special, which is the oracle here."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from hedged._odds import expit, logit


@given(st.floats(allow_nan=False))
def test_a_probability_is_that_of_scipy(log_odds: float) -> None:
    assert float(expit(log_odds)) == pytest.approx(float(special.expit(log_odds)), rel=1e-14, abs=5e-324)


@given(st.floats(0, 1))
def test_log_odds_are_those_of_scipy(p: float) -> None:
    assert float(logit(p)) == pytest.approx(float(special.logit(p)), rel=1e-12, abs=1e-15)


def test_arrays_keep_their_shape_and_nothing_warns() -> None:
    with np.errstate(all="raise", under="ignore"):
        assert expit(np.array([[-np.inf, 0, np.inf]])).tolist() == [[0, 0.5, 1]]
    assert logit(np.array([0.0, 0.5, 1.0])).tolist() == [-np.inf, 0, np.inf]


def test_comparing_embeddings_imports_no_computer_algebra() -> None:
    code = (
        "import sys, torch; from hedged.match import MatchCurve, match_logit; from hedged import Gaussian\n"
        "z = Gaussian(torch.zeros(3, 2), torch.ones(3, 2))\n"
        "match_logit(z[torch.tensor([0, 1])], z[:2], MatchCurve())\n"
        "import hedged.decisions.calibration, hedged.search.gallery, hedged.search.cluster\n"
        "sys.exit(', '.join({'sympy', 'scipy.special', 'scipy.optimize'} & set(sys.modules)) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
