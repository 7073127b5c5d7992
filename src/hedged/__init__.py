"""Embeddings that know what they don't know: match probabilities and uncertainty by hedged instance embedding."""

from hedged.curve import MatchCurve as MatchCurve
from hedged.distributions import Gaussian as Gaussian
from hedged.distributions import Mixture as Mixture
from hedged.distributions import Point as Point
from hedged.match import ClosedForm as ClosedForm
from hedged.match import MonteCarlo as MonteCarlo
from hedged.match import match_matrix as match_matrix
from hedged.match import match_probability as match_probability
from hedged.match import self_mismatch as self_mismatch
