"""One picture a file; matplotlib is imported by ``canvas`` alone, within functions."""
