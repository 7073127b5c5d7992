"""How figures look, and what several of them draw."""
