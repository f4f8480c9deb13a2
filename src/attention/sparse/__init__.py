"""Fewer pairs: each query attends to a few keys, chosen by position or by content."""
