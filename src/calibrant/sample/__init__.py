"""Input: scored rows, wherever they are. One reader, one draw, one fold."""
