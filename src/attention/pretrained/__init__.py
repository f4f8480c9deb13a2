"""Published weights on the book's own modules: read and run, or refused by name."""

from attention.pretrained.loading import Pretrained, fetch, load

__all__ = ["Pretrained", "fetch", "load"]
