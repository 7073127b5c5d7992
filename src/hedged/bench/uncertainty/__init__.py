"""The fair fight: the field's ways to be uncertain, on the same vectors, tuned alike, measured alike.

    sets       what they are tried on: vectors, the same seen worse, and novel ones
    way        what a way is; how heads are trained
    points     ways on top of a point head: distance, ratio, norm, dropout, ensemble, loss prediction, Laplace
    gaussians  ways that embed as distributions: the mutual likelihood, the paper's, evidence
    measures   by what they are compared
    fight      all of it, resumable
    page       its table and figure

Each way is written from its paper, in the plainest form that works on vectors.
"""
