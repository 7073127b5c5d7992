"""What an embedding is: a `Point`, a `Gaussian`, a `Mixture` of C equal ones, or a Gaussian that may be turned.

`Gaussian` and `Mixture` have diagonal covariances. `FullGaussian` has any, in up to four dimensions; `LowRankGaussian`
a diagonal one and a few factors, in any number of them. All answer the same questions for a whole batch at once:
moments, samples, density, KL(p ‖ N(0, I)), and the housekeeping of tensors (indexing, stacking, moving, packing into
one tensor and back). Batch dimensions come first and the D dimensions of the embedding space last, `(..., D)`.
"""

from hedged.distributions.base import AnyDistribution as AnyDistribution
from hedged.distributions.base import Distribution as Distribution
from hedged.distributions.base import concatenate as concatenate
from hedged.distributions.base import stack as stack
from hedged.distributions.diagonal import Gaussian as Gaussian
from hedged.distributions.diagonal import Mixture as Mixture
from hedged.distributions.diagonal import Point as Point
from hedged.distributions.turned import MOST_FULL as MOST_FULL
from hedged.distributions.turned import FullGaussian as FullGaussian
from hedged.distributions.turned import LowRankGaussian as LowRankGaussian
