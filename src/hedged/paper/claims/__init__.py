"""The claims of the paper's text, each as a line that holds or does not, with the numbers that say so.

A claim is a function of a shelf, in the module of its subject; `exhibit` has them in order.
"""

from hedged.paper.claims.exhibit import EXHIBIT as EXHIBIT
