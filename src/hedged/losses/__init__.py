"""What training minimises: from a batch of distributions and its labels to one number.

`ContrastiveLoss` is equation 1 of the paper, `SoftContrastiveLoss` equation 3, `HedgedLoss` equation 8. Each is a mean
over the matching and a mean over the other pairs of distinct items of a batch, weighed by `positive_weight`. No item is
paired with itself: that would train η(x) towards zero.

Losses compose: `loss + 0.02 * MutualLikelihood()`, `Decoupled(for_means, for_variances)`. Their parameters are
`loss.parameters()`. `PositiveWeight` is the schedule of the positive weight.
"""

from hedged.losses.base import Loss as Loss
from hedged.losses.base import LossParts as LossParts
from hedged.losses.base import PairLoss as PairLoss
from hedged.losses.combined import Decoupled as Decoupled
from hedged.losses.combined import Scaled as Scaled
from hedged.losses.combined import Sum as Sum
from hedged.losses.contrastive import ContrastiveLoss as ContrastiveLoss
from hedged.losses.contrastive import SoftContrastiveLoss as SoftContrastiveLoss
from hedged.losses.hedged import HedgedLoss as HedgedLoss
from hedged.losses.likelihood import ExpectedLog as ExpectedLog
from hedged.losses.likelihood import Likelihood as Likelihood
from hedged.losses.likelihood import Marginal as Marginal
from hedged.losses.mutual import MutualLikelihood as MutualLikelihood
from hedged.losses.pairs import AllPairs as AllPairs
from hedged.losses.pairs import PairSelection as PairSelection
from hedged.losses.pairs import SampledPairs as SampledPairs
from hedged.losses.schedule import PositiveWeight as PositiveWeight
from hedged.match import BatchPairs as BatchPairs
