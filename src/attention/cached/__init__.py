"""Writing one token at a time: the key-value cache, and fewer keys and values in it."""
