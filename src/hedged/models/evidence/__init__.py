"""The head that `hedged.retrofit` fits to vectors: a vector becomes a Gaussian, no wider than the prior of an identity.

| file | its one idea |
|---|---|
| front.py | vectors made alike: standardised, of unit length, on their principal axes |
| strangers.py | how rare an input is: a likelihood ratio averages one over strangers |
| head.py | `Branch` and `EvidenceHead`: where the identity is, and how much the vector tells of it |
"""
