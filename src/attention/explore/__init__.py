"""Interactive views of every idea in the book, for any notebook."""

from attention.explore.splitting import splitting_explorer

__all__ = ["splitting_explorer"]
