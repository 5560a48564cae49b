"""The parts of the default calibrator: a smooth curve whose average in every region is proved."""
