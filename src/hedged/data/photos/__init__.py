"""Photos of identities, from a folder or a table: listed, decoded once, split by identity, augmented in batches."""

from hedged.data.photos.augmentation import Augmentation as Augmentation
from hedged.data.photos.config import ImagesConfig as ImagesConfig
from hedged.data.photos.dataset import Photos as Photos
from hedged.data.photos.dataset import open_photos as open_photos
from hedged.data.photos.listing import list_photos as list_photos
from hedged.data.photos.pairs import PairList as PairList
from hedged.data.photos.pairs import read_pairs as read_pairs
from hedged.data.photos.stream import PhotoStream as PhotoStream
