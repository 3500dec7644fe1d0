"""fairseq tasks; fairseq imports every file here."""

# Its import registers the plugin: before, not in the midst of, the import of a module here.
import fairseq  # noqa: F401
