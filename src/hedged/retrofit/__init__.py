"""A hedged head on vectors that you already have, scikit-learn style: `Retrofit(seed=0).fit(X, y)`.

| file | its one idea |
|---|---|
| estimator.py | `Retrofit`: fit, match_proba, uncertainty, novelty, save and load |
| saved.py | a fitted head on disk: a model as any other, and what only `Retrofit` knows |
| checks.py | what is refused, in words |
| simple.py | the simpler ways, cosine, LDA and PLDA, as heads of the same kind |
| folds.py | identities dealt out, so that no head is judged by those it has seen |
| crossfit.py | training on pairs of identities that the directions have not seen |
| degrade.py | poorer vectors, where nobody has real ones |
| decline.py | which way vectors move when inputs get worse |
| blend.py | branches blended into one head, and log-odds that hold for strangers |
| calibrate.py | a straight line through log-odds |
| fitting.py | the steps of a fit, in order |
| select.py | what is compared on held-out identities, and what is chosen |

The head itself, which makes a Gaussian of a vector, and PLDA in closed form, where every head starts, are
`hedged.models.evidence`. Novelty is `hedged.novelty`.
"""

from hedged.models.evidence.head import EvidenceHead as EvidenceHead
from hedged.retrofit.estimator import Retrofit as Retrofit
from hedged.retrofit.select import Report as Report
