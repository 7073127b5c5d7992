"""Data: MNIST found, fetched and verified; N-digit MNIST composed from it; photos; batches drawn from all of them."""

from hedged.data.dataset import Dataset as Dataset
from hedged.data.dataset import Splits as Splits
from hedged.data.index import read_index as read_index
from hedged.data.mnist import Digits as Digits
from hedged.data.mnist import load_mnist as load_mnist
from hedged.data.mnist import offline_digits as offline_digits
from hedged.data.ndigit import NDigit as NDigit
from hedged.data.ndigit import build_ndigit as build_ndigit
from hedged.data.occlusion import occlude as occlude
from hedged.data.photos import Augmentation as Augmentation
from hedged.data.photos import PairList as PairList
from hedged.data.photos import Photos as Photos
from hedged.data.photos import PhotoSplits as PhotoSplits
from hedged.data.photos import PhotoStream as PhotoStream
from hedged.data.photos import SplitRule as SplitRule
from hedged.data.photos import list_photos as list_photos
from hedged.data.photos import open_photos as open_photos
from hedged.data.photos import read_pairs as read_pairs
from hedged.data.sampling import ClassSampler as ClassSampler
from hedged.data.splits import NDigitSplits as NDigitSplits
from hedged.data.splits import SplitSizes as SplitSizes
from hedged.data.splits import ndigit_splits as ndigit_splits
from hedged.data.streams import Batch as Batch
from hedged.data.streams import Batches as Batches
from hedged.data.streams import TwoStream as TwoStream
