"""What every part of the package may use; it imports nothing but the standard library."""
