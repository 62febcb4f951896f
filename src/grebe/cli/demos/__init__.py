"""What `grebe demo` shows, one module a story."""
