r"""How a match curve is integrated in closed form: σ(b − u) as a sum of Gaussians, whose integrals are known.

| file | what |
|---|---|
| `expansion.py`, `.json` | σ(b − u) ≈ Σ_j w_j(b) exp(−c_j u²), with a certified error |
| `units.py` | embeddings and curve in the units in which p(m \| r) = σ(b − r); what is cut, and where |
| `elementwise.py` | pairs that broadcast, with gradients: `match_probability` |
| `turned.py` | the same where covariances are not diagonal |
| `matrix.py`, `turned_matrix.py` | all pairs of two lists: `match_matrix`; where covariances are not diagonal |
| `spherical.py` | the same where each item has one variance: a product of matrices in place of a loop over dimensions |
| `nearest.py`, `leaves.py` | the best matches in a gallery: `best_matches` |
| `candidates.py` | probes and the candidates that each has chosen: the second stage of a search |
| `batch_loss.py` | all pairs of a batch, costs and gradients in one pass: `HedgedLoss` |
| `loops/` | the compiled inner loops of all of these, and in `limits.py` what they agree on |

Each compiled path has the elementwise formula as its oracle in the tests; `loops/limits.py` says where they differ.
"""
