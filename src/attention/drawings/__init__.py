"""What a teacher draws: the chapters' tensors as boxes, operations as arrows, weights as widths.

Each function returns a `Drawing`, painted from tensors: a wrong number in a drawing is a wrong
number in a tensor.
"""

from attention.drawings.arrows import clock_hands, query_and_keys, sort_cut_look, two_clocks
from attention.drawings.curves import (
    distance_waves,
    ladder,
    listening,
    loss_of_share,
    roofline,
    score_by_position,
    softmax_steps,
    weights_by_size,
)
from attention.drawings.drawing import Drawing
from attention.drawings.flows import (
    readers_and_writer,
    two_stories,
    weighted_sum,
    write_match_copy,
    writing_steps,
)
from attention.drawings.heads import (
    cut_into_heads,
    four_caches,
    heads_add,
    merges,
    merging,
    view_then_transpose,
)
from attention.drawings.layers import cone, gradients_way_back, residual_stream, who_asks
from attention.drawings.maps import module_map, two_towers, which_one
from attention.drawings.strips import (
    decode_step,
    logit_by_head,
    mask_after_softmax,
    score_in_parts,
    two_memories,
    weight_on_pads,
)
from attention.drawings.tables import (
    chunk_by_chunk,
    erase_then_write,
    mask_before_softmax,
    same_average,
    teacher_forcing,
    three_projections,
    two_readers,
    word_and_place,
)

__all__ = [name for name, value in globals().items() if callable(value)]
