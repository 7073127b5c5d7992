"""What training minimises: from a batch of distributions and its labels to one number.

`ContrastiveLoss` is equation 1 of the paper, `SoftContrastiveLoss` equation 3, `HedgedLoss` equation 8. Each is a mean
over the matching and a mean over the other pairs of distinct items of a batch, weighed by `positive_weight`. No item is
paired with itself: that would train η(x) towards zero.
"""

from hedged.losses.contrastive import ContrastiveLoss as ContrastiveLoss
from hedged.losses.contrastive import SoftContrastiveLoss as SoftContrastiveLoss
from hedged.losses.hedged import HedgedLoss as HedgedLoss
from hedged.losses.likelihood import ExpectedLog as ExpectedLog
from hedged.losses.likelihood import Likelihood as Likelihood
from hedged.losses.likelihood import Marginal as Marginal
from hedged.losses.pair_loss import LossParts as LossParts
from hedged.losses.pair_loss import PairLoss as PairLoss
from hedged.losses.selection import AllPairs as AllPairs
from hedged.losses.selection import BatchPairs as BatchPairs
from hedged.losses.selection import PairSelection as PairSelection
from hedged.losses.selection import SampledPairs as SampledPairs
