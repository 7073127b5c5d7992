"""The paper: its own numbers, as data."""

from hedged.paper.numbers import TABLES as TABLES
from hedged.paper.numbers import PaperCell as PaperCell
from hedged.paper.numbers import find_cell as find_cell
