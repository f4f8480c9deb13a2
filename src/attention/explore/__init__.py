"""Interactive views of every idea in the book, for any notebook."""

from attention.explore.multihead import multihead_explorer
from attention.explore.projection import projection_explorer
from attention.explore.splitting import splitting_explorer

__all__ = [
    "multihead_explorer",
    "projection_explorer",
    "splitting_explorer",
]
