"""Benchmarks: ratios against the straightforward ways of computing, measured side by side in one run."""
