"""Checks that diagnose: they run your function on numbers and name the mistake you made.

    from attention.checks import check_split_heads

    check_split_heads(split_heads)  # as the last line of a cell

Each takes a function or class with the signature that `attention` has, runs it on several inputs
and answers with a `Result`: `.passed`, and the text that it shows. `seed=` draws other sizes and
other numbers. `.require()` makes it a test, which raises `NotYet` where it has not passed.
"""

from .add_and_norm import check_add_and_norm
from .additive_weights import check_additive_weights
from .attention_weights import check_attention_weights
from .back_to_verb import check_back_to_verb
from .causal import check_causal_mask
from .decoder_step import check_decoder_step
from .delta_write import check_delta_write
from .dot_product import check_scaled_dot_product_attention
from .find_by import check_find_by
from .greedy import check_greedy
from .join_parts import check_join_parts
from .look_back import check_look_back
from .mean_weight import check_mean_weight
from .merging import check_merge_heads
from .multihead import check_multi_head_attention
from .padding import check_padding_mask
from .pool_heads import check_pool_heads
from .pre_norm_layer import check_pre_norm_layer
from .projection import check_projection
from .receptive_field import check_receptive_field
from .remove_each import check_remove_each
from .result import NotYet, Result
from .rotary_attention import check_rotary_attention
from .rotary_grouped import check_rotary_grouped
from .rotate_head import check_rotate_head
from .share_bucket import check_share_bucket
from .splitting import check_split_heads
from .step_cost import check_step_cost
from .step_matrix import check_step_matrix
from .training_loop import check_training_loop
from .training_step import check_training_step
from .two_heads import check_two_heads
from .what_followed import check_what_followed

__all__ = ["NotYet", "Result", *(name for name in globals() if name.startswith("check_"))]
