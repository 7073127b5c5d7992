"""N-digit MNIST: digits from a cache or fetched, composed into images, occluded, split, and drawn in batches."""
