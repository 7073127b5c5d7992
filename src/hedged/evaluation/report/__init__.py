"""The report of an evaluation: one HTML page, with its pictures inside it."""
