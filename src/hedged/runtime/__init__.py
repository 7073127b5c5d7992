"""Exported models without torch: embed, match and decide with NumPy and onnxruntime alone.

`hedged export RUN --onnx FILE` writes what `Model.load` opens. Nothing here imports torch, numba or any part of hedged
that does; onnxruntime is imported when a model is opened, Pillow when an image is.

| file | what |
|---|---|
| `model.py` | `Model`: inputs in, embeddings, match probabilities and decisions out |
| `embeddings.py` | `Embeddings`: means, variances, η and novelty as arrays |
| `_file.py` | an .onnx file, checked before anything is made of it |
| `_description.py` | what its metadata says, checked |
| `_inputs.py` | arrays and images as the network takes them |
| `_match.py` | log-odds of a match from means and variances |
| `decisions.py` | calibrated probabilities; accept, reject or abstain |
"""

from hedged.runtime.decisions import Decisions as Decisions
from hedged.runtime.embeddings import Embeddings as Embeddings
from hedged.runtime.model import Model as Model
