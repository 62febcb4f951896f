"""The names of other systems over Grebe's own, for programs that come from there."""
