"""Decoding with fairseq's models: token by token, all at once, and by refinement."""

# Its import registers the plugin: before, not in the midst of, the import of a module here.
import fairseq  # noqa: F401
