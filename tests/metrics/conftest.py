"""Hypothesis without a deadline: on two shared cores a slow example says nothing about the code."""

from hypothesis import settings

settings.register_profile("metrics", settings(deadline=None))  # the rest stays as it was loaded
settings.load_profile("metrics")
