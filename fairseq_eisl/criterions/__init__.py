"""fairseq criterions, one registered name a file."""
