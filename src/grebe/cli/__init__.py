"""The command line: `grebe VERB …`, one module a verb, over the same verbs as the Python interface."""
