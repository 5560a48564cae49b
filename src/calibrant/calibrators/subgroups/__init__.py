"""A calibrator with a guarantee for every subgroup: a boosted correction of the logit, whose error
other rows bound.
"""
