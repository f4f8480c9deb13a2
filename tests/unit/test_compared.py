"""A mechanism stands beside the others where they are timed and where they learn recall."""

import pytest

import attention
import benchmarks.family
from attention.trained.recall import mechanisms as recall
from tests.unit.mechanisms import FUNCTIONS

MECHANISMS = {name.split(",")[0] for name in FUNCTIONS}
PARTS = {"kernel_attention", "attend_in_blocks"}  # others call them with what makes a mechanism
# Chapter 19 counts what a choice of keys costs, for a model that was trained without one.
CHOSEN = {"selected_attention", "moba_attention"}
NOT_IN = {
    # fused_attention is torch's own kernel; decay is the gated delta rule without its writing
    benchmarks.family: {*PARTS, *CHOSEN, "fused_attention", "decayed_linear_attention"},
    # one way of computing softmax stands for three, one pattern of fixed rows for two
    recall: {*PARTS, *CHOSEN, "scaled_dot_product_attention", "tiled_attention", "fixed_attention"},
}
LAYERS = {  # the layer in which a function learns recall
    "grouped_attention": "GroupedQueryAttention",
    "performer_attention": "Performer",
    "linformer_attention": "Linformer",
    "lsh_attention": "ReformerAttention",
    "gated_delta_rule": "GatedDeltaNetAttention",
}


@pytest.mark.parametrize("table", NOT_IN, ids=lambda table: table.__name__)
def test_a_mechanism_is_in_the_table_or_named_as_left_out(table):
    used = vars(table).keys() & attention.__all__
    there = {name for name in MECHANISMS if name in used or LAYERS.get(name) in used}
    assert there | NOT_IN[table] == MECHANISMS
    assert not there & NOT_IN[table]
