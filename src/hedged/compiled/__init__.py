"""Inner loops compiled by numba on first use and kept on disk: no compiler is needed.

Import it late: numba is slow to import. Every loop takes a range of its work first, so that threads can share it, and
never lets them share a sum: results do not depend on the number of threads.
"""
