"""Decisions: calibrated match probabilities, thresholds for a false-match rate, and leave to say "I don't know".

`calibrate` makes a `Decider` from scores, the log-odds of a match that a model gives to pairs
(`hedged.match.match_logit`), and from whom they show; `load_decider` finds the one beside a model.
"""

from hedged.decisions.calibrate import Aims as Aims
from hedged.decisions.calibrate import Calibration as Calibration
from hedged.decisions.calibrate import calibrate as calibrate
from hedged.decisions.calibrators import Calibrator as Calibrator
from hedged.decisions.calibrators import Isotonic as Isotonic
from hedged.decisions.calibrators import Temperature as Temperature
from hedged.decisions.calibrators import base_rate_shift as base_rate_shift
from hedged.decisions.choice import Choice as Choice
from hedged.decisions.choice import Quality as Quality
from hedged.decisions.choice import Trial as Trial
from hedged.decisions.choice import choose as choose
from hedged.decisions.choice import quality as quality
from hedged.decisions.decider import Answer as Answer
from hedged.decisions.decider import Decider as Decider
from hedged.decisions.decider import load_decider as load_decider
from hedged.decisions.pairs import ScoredPairs as ScoredPairs
from hedged.decisions.pairs import identities_of_list as identities_of_list
from hedged.decisions.policy import AbstainByCosts as AbstainByCosts
from hedged.decisions.policy import AbstainByRate as AbstainByRate
from hedged.decisions.policy import Abstention as Abstention
from hedged.decisions.policy import Outcome as Outcome
from hedged.decisions.policy import Policy as Policy
from hedged.decisions.policy import Verdict as Verdict
from hedged.decisions.policy import outcome as outcome
from hedged.decisions.thresholds import FalseMatchThreshold as FalseMatchThreshold
from hedged.decisions.thresholds import Interval as Interval
from hedged.decisions.thresholds import false_match_threshold as false_match_threshold
