"""Settings of every test: examples are the same in every run, and a slow machine fails none of them."""

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")
