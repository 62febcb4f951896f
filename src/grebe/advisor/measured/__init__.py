"""What was predicted beside what was measured: shown, and used so that the next prediction is better."""
