"""Vectors that another model made: files of them, sets of identities, their batches, and their section [data]."""
