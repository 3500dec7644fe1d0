"""Dataset wrappers."""
