"""Embeddings that know what they don't know: match probabilities and uncertainty by hedged instance embedding.

The public names are found here and made on first use: `import hedged` does not import torch, so that the command line
answers `--help` at once.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedged.architecture import Architecture as Architecture
    from hedged.curve import MatchCurve as MatchCurve
    from hedged.distributions import Gaussian as Gaussian
    from hedged.distributions import Mixture as Mixture
    from hedged.distributions import Point as Point
    from hedged.embedder import Embedder as Embedder
    from hedged.errors import HedgedError as HedgedError
    from hedged.heads import GaussianHead as GaussianHead
    from hedged.heads import MixtureHead as MixtureHead
    from hedged.heads import PointHead as PointHead
    from hedged.losses import ContrastiveLoss as ContrastiveLoss
    from hedged.losses import HedgedLoss as HedgedLoss
    from hedged.losses import SoftContrastiveLoss as SoftContrastiveLoss
    from hedged.match import ClosedForm as ClosedForm
    from hedged.match import MonteCarlo as MonteCarlo
    from hedged.match import log_match_probability as log_match_probability
    from hedged.match import match_matrix as match_matrix
    from hedged.match import match_probability as match_probability
    from hedged.match import self_mismatch as self_mismatch
    from hedged.ranking import best_matches as best_matches

_NAMES = {
    "architecture": ["Architecture"],
    "curve": ["MatchCurve"],
    "distributions": ["Gaussian", "Mixture", "Point"],
    "embedder": ["Embedder"],
    "errors": ["HedgedError"],
    "heads": ["GaussianHead", "MixtureHead", "PointHead"],
    "losses": ["ContrastiveLoss", "HedgedLoss", "SoftContrastiveLoss"],
    "match": [
        "ClosedForm",
        "MonteCarlo",
        "log_match_probability",
        "match_matrix",
        "match_probability",
        "self_mismatch",
    ],
    "ranking": ["best_matches"],
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hedged' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hedged.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
