"""fairseq tasks; fairseq imports every file here that has no leading underscore."""
