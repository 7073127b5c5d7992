"""Vectors that another model made: files of them, sets with identities, and their batches."""
