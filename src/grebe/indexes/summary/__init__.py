"""An index that holds no rows but a summary of each file: sketches, and sieves of all files. Shared by kinds that prune."""
