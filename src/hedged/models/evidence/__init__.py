"""Heads whose Gaussians are no wider than the prior of an identity: one that is fitted to vectors, one that is trained.

| file | its one idea |
|---|---|
| plda.py | two-covariance PLDA in closed form: where both start |
| posterior.py | `PosteriorHead`: trained with its network by `hedged train` |
| head.py | `Branch` and `EvidenceHead`: fitted to vectors by `hedged.retrofit` |
| front.py | vectors made alike: standardised, of unit length, on their principal axes |
| strangers.py | how rare an input is: a likelihood ratio averages one over strangers |
"""
