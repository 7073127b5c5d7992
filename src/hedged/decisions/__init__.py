"""Decisions: same or not, at a threshold chosen on other identities."""

from hedged.decisions.verification import Decisions as Decisions
from hedged.decisions.verification import choose_threshold as choose_threshold
from hedged.decisions.verification import decide as decide
from hedged.decisions.verification import decide_listed as decide_listed
from hedged.decisions.verification import some_or_all_pairs as some_or_all_pairs
