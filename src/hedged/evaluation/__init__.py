"""What is measured of a model, and the report of it."""

from hedged.evaluation.evaluation import CONDITIONS as CONDITIONS
from hedged.evaluation.evaluation import GRID as GRID
from hedged.evaluation.evaluation import Array as Array
from hedged.evaluation.evaluation import Condition as Condition
from hedged.evaluation.evaluation import Evaluation as Evaluation
from hedged.evaluation.evaluation import match_scores as match_scores
from hedged.evaluation.verification import EVEN_ODDS as EVEN_ODDS
from hedged.evaluation.verification import Decisions as Decisions
from hedged.evaluation.verification import choose_threshold as choose_threshold
from hedged.evaluation.verification import decide as decide
from hedged.evaluation.verification import decide_listed as decide_listed
from hedged.evaluation.verification import some_or_all_pairs as some_or_all_pairs
