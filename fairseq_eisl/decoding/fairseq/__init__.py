"""Decoding with fairseq's models: token by token, all at once, and by refinement."""
