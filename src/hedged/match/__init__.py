"""When do two inputs match? p(m | x₁, x₂) and everything about it."""

from hedged.match.curve import MatchCurve as MatchCurve
from hedged.match.estimators import CLOSED_FORM as CLOSED_FORM
from hedged.match.estimators import ClosedForm as ClosedForm
from hedged.match.estimators import Estimator as Estimator
from hedged.match.estimators import MonteCarlo as MonteCarlo
from hedged.match.estimators import log_match_probability as log_match_probability
from hedged.match.estimators import logit_matrix as logit_matrix
from hedged.match.estimators import match_logit as match_logit
from hedged.match.estimators import match_matrix as match_matrix
from hedged.match.estimators import match_probability as match_probability
from hedged.match.estimators import self_mismatch as self_mismatch
from hedged.match.nearest import Matches as Matches
from hedged.match.nearest import best_matches as best_matches
