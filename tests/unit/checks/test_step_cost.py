"""What check_step_cost calls right is what torch counts of a layer that writes with a cache."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attention import FeedForward, GroupedQueryAttention
from attention.checks import check_step_cost
from attention.checks.inputs import Numbers
from attention.checks.step_cost import TASK, step_cost

pytestmark = pytest.mark.usefixtures("as_a_reader")


@pytest.mark.parametrize("seed", [0, 1])
def test_the_right_counts_are_those_of_a_layer_with_a_cache(seed):
    for case in TASK.cases(Numbers(seed)):
        n, d_model, n_heads, d_ff = case.inputs.values()
        layer = GroupedQueryAttention(d_model, n_heads, n_heads)
        feed_forward, cache = FeedForward(d_model, d_ff), layer.new_cache(1, n)
        past, token = torch.zeros(1, n - 1, d_model), torch.zeros(1, 1, d_model)
        with torch.no_grad():
            layer(past, cache=cache)
            with FlopCounterMode(display=False) as counter:
                layer(token, cache=cache)
            attention = counter.get_total_flops()
            with FlopCounterMode(display=False) as counter:
                feed_forward(token)
        projections, pairs, wide, kept = step_cost(n, d_model, n_heads, d_ff).tolist()
        assert 2 * (projections + pairs) == attention
        assert 2 * wide == counter.get_total_flops()
        assert kept == cache.keys.numel() + cache.values.numel() and cache.length == n


def test_a_list_is_told_how_to_become_a_tensor():
    result = check_step_cost(lambda n, d_model, n_heads, d_ff: [4 * d_model**2, 0, 0, 0])
    assert "`torch.tensor` makes a tensor of a list of numbers." in result.paragraphs[0]
