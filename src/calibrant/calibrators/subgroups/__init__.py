"""A calibrator with a guarantee for every subgroup: a boosted correction of the logit, proved on
other rows.
"""
