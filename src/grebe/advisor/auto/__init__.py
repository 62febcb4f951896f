"""A table that looks after its indexes: builds what would pay, keeps it fresh and well laid out, drops what does not pay."""
