"""Stores of embeddings, search in them by match probability, and who a probe shows, if anybody.

`Gallery` is the short way: create, add, search, identify. Below it are the parts: `rows` (what a store holds), `store`
(the interface of every store), `engines` (the databases), `index` (search in two stages), `identify` with `fusion` and
`unknowns` (several images of one identity, and "none of these").

The public names are listed in `__init__.pyi` and imported on first use: `hedged index info` needs no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
