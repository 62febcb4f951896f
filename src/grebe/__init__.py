"""Indexes for data lakes."""
