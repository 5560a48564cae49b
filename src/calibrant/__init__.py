"""Scores of any binary classifier, turned into probabilities that come with a proof."""

__version__ = "0.1.0"
