"""Decisions: calibrated match probabilities, thresholds for a false-match rate, and leave to say "I don't know"."""

from hedged.decisions.verification import EVEN_ODDS as EVEN_ODDS
from hedged.decisions.verification import Decisions as Decisions
from hedged.decisions.verification import choose_threshold as choose_threshold
from hedged.decisions.verification import decide as decide
from hedged.decisions.verification import decide_listed as decide_listed
from hedged.decisions.verification import some_or_all_pairs as some_or_all_pairs
