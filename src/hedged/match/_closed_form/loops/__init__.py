"""The compiled inner loops of the closed form."""
