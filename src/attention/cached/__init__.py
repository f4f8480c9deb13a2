"""Writing one token at a time: the key-value cache, and fewer heads of keys and values."""
