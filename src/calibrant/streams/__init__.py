"""Labels that arrive one by one: calibration at every moment."""
