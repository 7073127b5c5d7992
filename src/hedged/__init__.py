"""Embeddings that know what they don't know: match probabilities and uncertainty by hedged instance embedding.

The public names are listed once, in `__init__.pyi`, and imported on first use: `import hedged` does not import torch,
so that the command line answers `--help` at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
