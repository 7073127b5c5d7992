"""Configs, the training loop, and run folders.

The public names are listed in `__init__.pyi` and imported on first use: whoever opens a run needs no losses.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
