"""How the match curve is integrated in closed form."""
