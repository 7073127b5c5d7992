"""Data: MNIST found, fetched and verified; N-digit MNIST composed from it; batches drawn from that."""

from hedged.data.index import read_index as read_index
from hedged.data.mnist import Digits as Digits
from hedged.data.mnist import load_mnist as load_mnist
from hedged.data.mnist import offline_digits as offline_digits
from hedged.data.ndigit import NDigit as NDigit
from hedged.data.ndigit import build_ndigit as build_ndigit
from hedged.data.occlusion import occlude as occlude
from hedged.data.splits import NDigitSplits as NDigitSplits
from hedged.data.splits import SplitSizes as SplitSizes
from hedged.data.splits import ndigit_splits as ndigit_splits
from hedged.data.streams import Batch as Batch
from hedged.data.streams import TwoStream as TwoStream
