"""Interactive views of every idea in the book, for any notebook."""

from attention.explore.attention_graph import attention_graph_explorer
from attention.explore.embedding import embedding_explorer
from attention.explore.masking import masking_explorer
from attention.explore.merging import merging_explorer
from attention.explore.multihead import multihead_explorer
from attention.explore.projection import projection_explorer
from attention.explore.scaling import scaling_explorer
from attention.explore.splitting import splitting_explorer
from attention.explore.training import training_explorer
from attention.explore.who_and_whom import who_and_whom_explorer

__all__ = [
    "attention_graph_explorer",
    "embedding_explorer",
    "masking_explorer",
    "merging_explorer",
    "multihead_explorer",
    "projection_explorer",
    "scaling_explorer",
    "splitting_explorer",
    "training_explorer",
    "who_and_whom_explorer",
]
