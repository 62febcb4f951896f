"""Where bytes lie: one small protocol, and an implementation for each platform."""
