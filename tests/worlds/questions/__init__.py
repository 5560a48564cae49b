"""Questions to the library by area; importing a module adds its questions to `base.QUESTIONS`."""
