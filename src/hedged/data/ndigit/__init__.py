"""N-digit MNIST: digits found or fetched, composed, occluded, split, and drawn in batches."""
