"""How `Evidence` is worked out for all pairs: `matrix.py` picks the way, `loops.py` has the compiled inner loops."""
