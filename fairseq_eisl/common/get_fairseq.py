"""What to say where fairseq is missing."""

GET_FAIRSEQ = 'pip install "fairseq-eisl[fairseq-deps]" && pip install --no-deps ve-fairseq'
"""The commands that install it, without the torchaudio that it asks for and texts do not need."""
