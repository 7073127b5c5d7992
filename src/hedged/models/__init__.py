"""From inputs to distributions: backbones, heads, views, and the embedder that joins them with a match model."""

from hedged.models.backbones import Backbone as Backbone
from hedged.models.chunks import embed_all as embed_all
from hedged.models.chunks import embed_all_with_novelty as embed_all_with_novelty
from hedged.models.chunks import embed_chunks as embed_chunks
from hedged.models.config import Architecture as Architecture
from hedged.models.config import ModelConfig as ModelConfig
from hedged.models.embedder import Embedder as Embedder
from hedged.models.embedder import ImageLike as ImageLike
from hedged.models.embedder import channels_last as channels_last
from hedged.models.evidence.posterior import PosteriorHead as PosteriorHead
from hedged.models.heads import FullHead as FullHead
from hedged.models.heads import GaussianHead as GaussianHead
from hedged.models.heads import Head as Head
from hedged.models.heads import LowRankHead as LowRankHead
from hedged.models.heads import MixtureHead as MixtureHead
from hedged.models.heads import PointHead as PointHead
from hedged.models.saved import shipped_models as shipped_models
from hedged.models.views import Mirrored as Mirrored
from hedged.models.views import OneView as OneView
from hedged.models.views import Views as Views
