"""Stores of embeddings, search in them by match probability, and whom a probe shows, if anybody."""

from hedged.search.embedded import EmbeddedIndex as EmbeddedIndex
from hedged.search.first_stage import Plan as Plan
from hedged.search.fusion import Fusion as Fusion
from hedged.search.fusion import MixtureFusion as MixtureFusion
from hedged.search.fusion import NeighbourFusion as NeighbourFusion
from hedged.search.fusion import ProductFusion as ProductFusion
from hedged.search.identify import Gallery as Gallery
from hedged.search.identify import Identified as Identified
from hedged.search.identify import Identifier as Identifier
from hedged.search.identify import Identity as Identity
from hedged.search.index import Index as Index
from hedged.search.opening import create_store as create_store
from hedged.search.opening import open_index as open_index
from hedged.search.opening import open_store as open_store
from hedged.search.postgres import PostgresIndex as PostgresIndex
from hedged.search.postgres import PostgresStore as PostgresStore
from hedged.search.results import Hit as Hit
from hedged.search.rows import Batch as Batch
from hedged.search.rows import Described as Described
from hedged.search.rows import Header as Header
from hedged.search.rows import Rows as Rows
from hedged.search.sqlite import SqliteStore as SqliteStore
from hedged.search.store import Store as Store
from hedged.search.where import Where as Where
from hedged.search.where import parse_where as parse_where
