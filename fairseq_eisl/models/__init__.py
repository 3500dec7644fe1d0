"""fairseq models; fairseq imports every file here that has no leading underscore."""
