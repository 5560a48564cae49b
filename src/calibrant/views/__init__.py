"""Views receive numbers and draw them; they compute nothing."""
