"""One command a file: its flags and what it does. ``main`` puts them together."""
