"""Benchmarks: ratios against the straightforward ways of computing, measured side by side in one run.

    run            the groups by name, and what they leave: a table, its numbers and a plot
    matching, million, search, training, images, recipe    a group each
    references     the straightforward ways, written plainly
    growth, plot   how costs grow
    decisions, decisions_sets, decisions_page    calibration and abstention on other identities
    timing, memory, embeddings    what they measure with, and on

Only the command line imports this package.
"""
