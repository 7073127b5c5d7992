from .calibration_pairs import scored_pairs as scored_pairs
from .curves import Curves as Curves
from .evaluation import CONDITIONS as CONDITIONS
from .evaluation import GRID as GRID
from .evaluation import Array as Array
from .evaluation import Condition as Condition
from .evaluation import Evaluation as Evaluation
from .evaluation import match_scores as match_scores
from .headline import HeadlineRow as HeadlineRow
from .headline import headline_rows as headline_rows
from .report.page import write_report as write_report
from .results import Results as Results
from .results import measure as measure
from .verification import EVEN_ODDS as EVEN_ODDS
from .verification import Decisions as Decisions
from .verification import choose_threshold as choose_threshold
from .verification import decide as decide
from .verification import decide_listed as decide_listed
from .verification import some_or_all_pairs as some_or_all_pairs

__all__: list[str]
