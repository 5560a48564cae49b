"""What comes in: scored rows wherever they are. One reader, one draw, one fold."""
