"""How figures look and what they are made of: arrays in, matplotlib out.

    style         sizes, colours, calm axes
    plane         the plane on which embeddings of any dimension are drawn
    ellipses      Gaussians and class centres on that plane
    ellipsoids    Gaussians in three dimensions
    number_line   embeddings of one dimension, and the order of their classes
    curves        performance in bins of uncertainty, histograms
    reliability   match probabilities against what came true
    pictures      a test image in a frame

The report, the paper's figures and the benchmarks draw with these, and with nothing twice.
"""
