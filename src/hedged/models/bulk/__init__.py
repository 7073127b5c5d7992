"""Embedding more than one process should: pieces of the inputs, a shard of embeddings for each, a manifest of shards.

`pieces.py` cuts the inputs into pieces that are always the same; `shards.py` turns one piece into one Parquet file;
`manifest.py` keeps which are finished; `on_ray.py` has a cluster do it, and continues where it was stopped.
"""

from hedged.models.bulk.manifest import Manifest as Manifest
from hedged.models.bulk.manifest import is_shard_folder as is_shard_folder
from hedged.models.bulk.on_ray import embed_on_ray as embed_on_ray
from hedged.models.bulk.shards import read_shard as read_shard
