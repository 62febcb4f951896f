"""Sketches of files, given one by one or chosen by itself."""
