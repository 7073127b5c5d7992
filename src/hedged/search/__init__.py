"""Stores of embeddings, and search in them by match probability."""

from hedged.search.embedded import EmbeddedIndex as EmbeddedIndex
from hedged.search.first_stage import Plan as Plan
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
