"""When do two inputs match? p(m | x₁, x₂) and everything about it.

`MatchModel` is the interface; `MatchCurve` is the paper's model, σ(b − a‖z₁ − z₂‖) averaged over both embeddings, by an
`Estimator`; `Evidence` asks whether one identity or two explain both inputs. The functions take any model.

From `match_matrix` to its inner loop: `probability.py` checks and asks the model; `curve.py` asks its estimator;
`estimators.py` takes the compiled pass where there is one (`_closed_form/matrix.py`, whose loop is
`_closed_form/loops/matrix.py`), else blocks of plain torch (`_pairs.py`).
"""

from hedged.match._numbers import cross_entropy as cross_entropy
from hedged.match._numbers import distance as distance
from hedged.match._numbers import log_odds as log_odds
from hedged.match._pairs import BatchPairs as BatchPairs
from hedged.match._pairs import Matches as Matches
from hedged.match._pairs import PairCost as PairCost
from hedged.match._pairs import pair_costs as pair_costs
from hedged.match._pairs import pairs_of as pairs_of
from hedged.match.curve import MatchCurve as MatchCurve
from hedged.match.estimators import ClosedForm as ClosedForm
from hedged.match.estimators import Estimator as Estimator
from hedged.match.estimators import MonteCarlo as MonteCarlo
from hedged.match.evidence import Evidence as Evidence
from hedged.match.model import MatchModel as MatchModel
from hedged.match.nearest import best_matches as best_matches
from hedged.match.probability import log_match_probability as log_match_probability
from hedged.match.probability import match_logit as match_logit
from hedged.match.probability import match_matrix as match_matrix
from hedged.match.probability import match_probability as match_probability
from hedged.match.probability import self_mismatch as self_mismatch
