"""The parts of the default calibrator: a curve whose average in every region is guaranteed."""
