"""Tables of lake formats: what is read of them, and what becomes of their indexes while they change."""
