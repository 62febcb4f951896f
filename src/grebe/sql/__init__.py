"""The statements on indexes that an attached session understands, as data."""
