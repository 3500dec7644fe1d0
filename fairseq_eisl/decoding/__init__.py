"""Decoding of candidates in plain PyTorch; nothing here but ``decoding.fairseq`` needs fairseq."""

from .candidates import AT_EOS, Candidates, candidate_statistics, decode, decode_in_parallel

__all__ = ["AT_EOS", "Candidates", "candidate_statistics", "decode", "decode_in_parallel"]
