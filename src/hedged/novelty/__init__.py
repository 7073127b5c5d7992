"""What the model has never seen: how unlike its training inputs an input is, from the features of its backbone.

Three numbers, never one. η(x) asks whether the input could be several things, novelty whether it is unlike what the
model was trained on, and P(nobody) whether it is none of the identities of a gallery.

| file | its one idea |
|---|---|
| gaussians.py | the score: relative Mahalanobis distance to the nearest of many identities |
| percentile.py | the score as a share of held-out training inputs, of identities that the fit has not seen |
| novelty.py | `Novelty`: both together; fitted in one pass over features, saved beside the model |
"""

from hedged.novelty.gaussians import IdentityGaussians as IdentityGaussians
from hedged.novelty.novelty import Novelty as Novelty
from hedged.novelty.percentile import Percentile as Percentile
