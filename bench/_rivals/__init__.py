"""Rivals of a lookup, each in a process of its own with packages of its own; they tell how long a call took, measured there."""
