"""What is measured of a trained model, and the report of it.

`measure` does what `hedged evaluate` does: it measures a run on a test set, decides on pairs, and writes metrics.json
and, if wanted, the report. `Evaluation` is the measurements alone, of any `Embedder` on any `Dataset`; `decide` makes
`Decisions` on its pairs, and `write_report` the page. Below them: `curves`, `headline` (the table), `reference` (the
paper's numbers), `calibration_pairs`, `space` (the embedding space, to be drawn).

The public names are listed in `__init__.pyi` and imported on first use: what draws is slow to import.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
