"""Decisions: calibrated match probabilities, thresholds for a false-match rate, and leave to say "I don't know".

`calibrate` makes a `Decider` from scores, the log-odds of a match that a model gives to pairs
(`hedged.match.match_logit`), and from whom they show; `load_decider` finds the one beside a model. `decide` measures an
embedder by the pairs of a test set at one threshold, chosen on other identities.
"""

from hedged.decisions.calibration import Calibrator as Calibrator
from hedged.decisions.calibration import Isotonic as Isotonic
from hedged.decisions.calibration import Temperature as Temperature
from hedged.decisions.calibration import base_rate_shift as base_rate_shift
from hedged.decisions.choice import Choice as Choice
from hedged.decisions.choice import Quality as Quality
from hedged.decisions.choice import Trial as Trial
from hedged.decisions.choice import choose as choose
from hedged.decisions.choice import quality as quality
from hedged.decisions.fit import Aims as Aims
from hedged.decisions.fit import Calibration as Calibration
from hedged.decisions.fit import calibrate as calibrate
from hedged.decisions.fit import kind_name as kind_name
from hedged.decisions.pairs import ScoredPairs as ScoredPairs
from hedged.decisions.pairs import identities_of_list as identities_of_list
from hedged.decisions.policy import AbstainByCosts as AbstainByCosts
from hedged.decisions.policy import AbstainByRate as AbstainByRate
from hedged.decisions.policy import Abstention as Abstention
from hedged.decisions.policy import Outcome as Outcome
from hedged.decisions.policy import Policy as Policy
from hedged.decisions.policy import Verdict as Verdict
from hedged.decisions.policy import outcome as outcome
from hedged.decisions.saved import Answer as Answer
from hedged.decisions.saved import Decider as Decider
from hedged.decisions.saved import load_decider as load_decider
from hedged.decisions.thresholds import FalseMatchThreshold as FalseMatchThreshold
from hedged.decisions.thresholds import Interval as Interval
from hedged.decisions.thresholds import false_match_threshold as false_match_threshold
from hedged.decisions.verification import EVEN_ODDS as EVEN_ODDS
from hedged.decisions.verification import Decisions as Decisions
from hedged.decisions.verification import choose_threshold as choose_threshold
from hedged.decisions.verification import decide as decide
from hedged.decisions.verification import decide_listed as decide_listed
from hedged.decisions.verification import some_or_all_pairs as some_or_all_pairs
