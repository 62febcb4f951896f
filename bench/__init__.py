"""One question a module, answered next to a rival in the same run: `python -m bench NAME`."""
