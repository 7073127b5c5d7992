"""Decisions: calibrated match probabilities, thresholds for a false-match rate, and leave to say "I don't know".

`calibrate` makes a `Decider` from scores, the log-odds of a match that a model gives to pairs
(`hedged.match.match_logit`), and from whom they show; `load_decider` finds the one beside a model.

The public names are listed in `__init__.pyi` and imported on first use: a model that was never calibrated needs none.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
