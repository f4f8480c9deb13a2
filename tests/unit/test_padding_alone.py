"""What hides the same keys from all queries, or asks for a query to each key, refuses the rest.

In its own name, and a module in that of what it attends with.
"""

import re

import pytest
import torch

from attention import causal_mask
from tests.unit.mechanisms import D_KEY, FUNCTIONS, HEADS, MODULES, N

pytestmark = pytest.mark.usefixtures("as_a_reader")

FLAG = ", which hides the future with causal=True alone,"
ITSELF = ", which hides the future by itself,"
PADDING_ALONE = {
    "kernel_attention": f"kernel_attention{FLAG}",
    "linear_attention": f"linear attention{FLAG}",
    "performer_attention": f"Performer{FLAG}",
    "random_feature_attention": f"Random Feature Attention{FLAG}",
    "decayed_linear_attention": f"decayed_linear_attention{ITSELF}",
    "gated_delta_rule": f"gated_delta_rule{ITSELF}",
    "linformer_attention": "Linformer",
    "sparse_attention": "sparse attention",
    "strided_attention": "strided attention",
    "fixed_attention": "fixed attention",
    "attend_in_blocks": "attention in blocks",
    "selected_attention": "selected attention",
    "moba_attention": "MoBA",
    "compressed_attention": "compressed attention",
    "lsh_attention": "LSH attention",
}
MODULES_OF_PADDING_ALONE = {
    "Linformer": "Linformer",
    "CompressedAttention": "compressed attention",
    "Performer": f"Performer{FLAG}",
    "GatedDeltaNetAttention": f"GatedDeltaNetAttention{ITSELF}",
    "ReformerAttention": "LSH attention",
    "IndexedAttention": "indexed attention",
}
A_QUERY_TO_EACH_KEY = {
    "linear_attention, causal": "causal=True needs one query for each key, got 10 queries and 11 "
    "keys; to go on after earlier tokens, carry their sums with linear_attention_step",
    "gated_delta_rule": "gated_delta_rule needs one query for each key, got 10 queries and 11 keys",
    "decayed_linear_attention": "decayed_linear_attention needs one query for each key",
    "sparse_attention": "sparse attention is self-attention: its pattern says how far a key lies "
    "from its query in one sequence; got 10 queries and 11 keys. Between two sequences use "
    "scaled_dot_product_attention",
    "strided_attention": "strided attention is self-attention",
    "fixed_attention": "fixed attention is self-attention",
    "attend_in_blocks": "attention in blocks is self-attention",
    "moba_attention": "MoBA is self-attention",
    "compressed_attention": "compressed attention is self-attention",
}
QUERY, KEY, VALUE = torch.zeros(3, 1, HEADS, N, D_KEY)


@pytest.mark.parametrize("name", PADDING_ALONE | MODULES_OF_PADDING_ALONE)
def test_a_mask_for_single_queries_is_refused(name):
    says = (PADDING_ALONE | MODULES_OF_PADDING_ALONE)[name]
    says += " can leave out keys for all queries alike, not for single queries: mask must have"
    says += " size 1 on its query axis, as padding_mask makes it, got (11, 11)"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        if name in FUNCTIONS:
            FUNCTIONS[name].call(QUERY, KEY, VALUE, causal_mask(N))
        else:
            MODULES[name].make()(*MODULES[name].inputs(N), mask=causal_mask(N))


@pytest.mark.parametrize("name", A_QUERY_TO_EACH_KEY)
def test_fewer_queries_than_keys_are_refused(name):
    with pytest.raises(ValueError, match=f"^{re.escape(A_QUERY_TO_EACH_KEY[name])}"):
        FUNCTIONS[name].call(QUERY[:, :, :-1], KEY, VALUE, None)
