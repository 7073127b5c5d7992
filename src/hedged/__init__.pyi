from .distributions import Distribution as Distribution
from .distributions import FullGaussian as FullGaussian
from .distributions import Gaussian as Gaussian
from .distributions import LowRankGaussian as LowRankGaussian
from .distributions import Mixture as Mixture
from .distributions import Point as Point
from .errors import HedgedError as HedgedError
from .losses import ContrastiveLoss as ContrastiveLoss
from .losses import HedgedLoss as HedgedLoss
from .losses import PositiveWeight as PositiveWeight
from .losses import SoftContrastiveLoss as SoftContrastiveLoss
from .match import ClosedForm as ClosedForm
from .match import Evidence as Evidence
from .match import MatchCurve as MatchCurve
from .match import MatchModel as MatchModel
from .match import MonteCarlo as MonteCarlo
from .match import best_matches as best_matches
from .match import log_match_probability as log_match_probability
from .match import match_matrix as match_matrix
from .match import match_probability as match_probability
from .match import self_mismatch as self_mismatch
from .models import Architecture as Architecture
from .models import Embedder as Embedder
from .models import GaussianHead as GaussianHead
from .models import Mirrored as Mirrored
from .models import MixtureHead as MixtureHead
from .models import PointHead as PointHead
from .models import PosteriorHead as PosteriorHead
from .retrofit import Retrofit as Retrofit
from .search import Gallery as Gallery

__all__: list[str]
__version__: str
