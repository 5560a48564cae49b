"""A classifier and a calibrator as one scikit-learn estimator."""
