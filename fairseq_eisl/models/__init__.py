"""fairseq models; fairseq imports every file here that has no leading underscore."""

# Its import registers the plugin: before, not in the midst of, the import of a module here.
import fairseq  # noqa: F401
