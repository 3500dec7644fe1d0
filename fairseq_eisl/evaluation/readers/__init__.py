"""What is read: logs, run folders, tables of a paper, and what flags name."""
