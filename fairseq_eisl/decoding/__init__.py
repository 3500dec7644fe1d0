"""Decoding of candidates in plain PyTorch; nothing here but ``decoding.fairseq`` needs fairseq."""

from .candidates import Candidates, decode, decode_in_parallel

__all__ = ["Candidates", "decode", "decode_in_parallel"]
