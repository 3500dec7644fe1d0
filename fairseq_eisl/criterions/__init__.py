"""fairseq criterions, one registered name a file, and what they share (``base``)."""

# Its import registers the plugin: before, not in the midst of, the import of a module here.
import fairseq  # noqa: F401
