"""A service for models in production: predictions and labels over HTTP, and a live page.

It is thin: `Monitor` counts and tests, the report draws.
"""
