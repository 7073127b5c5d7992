"""Data to train and test on: N-digit MNIST, photos, vectors of other models; each a `Dataset` in its own package.

`dataset` says what every kind of data can do, `config` what its section [data] of a config has; `splits` cuts sets by
identity, `sampling` draws batches, `inputs` and `tables` read what users give.
"""

from hedged.data.config import DataSection as DataSection
from hedged.data.dataset import Batch as Batch
from hedged.data.dataset import Batches as Batches
from hedged.data.dataset import Dataset as Dataset
from hedged.data.dataset import NamedDataset as NamedDataset
from hedged.data.dataset import PaperTask as PaperTask
from hedged.data.dataset import Splits as Splits
from hedged.data.features.config import FeaturesConfig as FeaturesConfig
from hedged.data.features.dataset import Features as Features
from hedged.data.features.dataset import open_features as open_features
from hedged.data.ndigit.config import NDigitConfig as NDigitConfig
from hedged.data.ndigit.dataset import NDigit as NDigit
from hedged.data.ndigit.dataset import build_ndigit as build_ndigit
from hedged.data.ndigit.index_file import read_index as read_index
from hedged.data.ndigit.index_file import write_index as write_index
from hedged.data.ndigit.mnist import Digits as Digits
from hedged.data.ndigit.mnist import load_mnist as load_mnist
from hedged.data.ndigit.mnist import offline_digits as offline_digits
from hedged.data.ndigit.occlusion import occlude as occlude
from hedged.data.ndigit.splits import SplitSizes as SplitSizes
from hedged.data.ndigit.splits import ndigit_splits as ndigit_splits
from hedged.data.ndigit.stream import TwoStream as TwoStream
from hedged.data.photos import Augmentation as Augmentation
from hedged.data.photos import ImagesConfig as ImagesConfig
from hedged.data.photos import PairList as PairList
from hedged.data.photos import Photos as Photos
from hedged.data.photos import PhotoStream as PhotoStream
from hedged.data.photos import list_photos as list_photos
from hedged.data.photos import open_photos as open_photos
from hedged.data.photos import read_pairs as read_pairs
from hedged.data.sampling import BatchPlan as BatchPlan
from hedged.data.sampling import ClassSampler as ClassSampler
from hedged.data.splits import SplitRule as SplitRule
