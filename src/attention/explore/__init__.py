"""Interactive views of every idea in the book, for any notebook."""

from attention.explore.aim_heads import aim_heads_explorer
from attention.explore.alignment import alignment_explorer
from attention.explore.all_heads import all_heads_explorer
from attention.explore.attention_graph import attention_graph_explorer
from attention.explore.be_the_head import be_the_head_explorer
from attention.explore.break_it import break_it_explorer
from attention.explore.buckets import buckets_explorer
from attention.explore.cache import cache_explorer
from attention.explore.cost import cost_explorer
from attention.explore.embedding import embedding_explorer
from attention.explore.features import features_explorer
from attention.explore.induction import induction_explorer
from attention.explore.layer import layer_explorer
from attention.explore.masking import masking_explorer
from attention.explore.memory import memory_explorer
from attention.explore.merging import merging_explorer
from attention.explore.next_tokens import next_tokens_explorer
from attention.explore.paint_a_mask import paint_a_mask_explorer
from attention.explore.pattern import pattern_explorer
from attention.explore.positions import positions_explorer
from attention.explore.projection import projection_explorer
from attention.explore.scaling import scaling_explorer
from attention.explore.situations import situations_explorer
from attention.explore.splitting import splitting_explorer
from attention.explore.steps import steps_explorer
from attention.explore.tiles import tiles_explorer
from attention.explore.training import training_explorer
from attention.explore.who_and_whom import who_and_whom_explorer
from attention.explore.wire_two_heads import wire_two_heads_explorer
from attention.explore.writing import writing_explorer

__all__ = [name for name in globals() if name.endswith("_explorer")]
