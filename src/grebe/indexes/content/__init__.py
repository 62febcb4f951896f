"""What kinds share that keep a sorted copy of some columns: its shape, how rows get to files, and what is known of each file."""
