"""A worked example from print: Raschka, Build a Large Language Model (From Scratch), 2024, §3.6.2.

Its layer maps 3 numbers per token to 2, in 2 heads of one number each, under a causal mask. Here it
is laid out in a layer of d_model 4: the missing columns are zero, and W_q is larger by √2 because
d_key is 2 instead of 1.
"""

import math

import torch
from torch import nn

from attention import MultiHeadAttention, causal_mask, merge_heads, split_heads

INPUTS = [  # "Your journey starts with one step"
    [0.43, 0.15, 0.89],
    [0.55, 0.87, 0.66],
    [0.57, 0.85, 0.64],
    [0.22, 0.58, 0.33],
    [0.77, 0.25, 0.10],
    [0.05, 0.80, 0.55],
]
PRINTED = [
    [0.3190, 0.4858],
    [0.2943, 0.3897],
    [0.2856, 0.3593],
    [0.2693, 0.3873],
    [0.2639, 0.3928],
    [0.2575, 0.4028],
]


def test_gives_the_printed_numbers():
    torch.manual_seed(123)
    query, key, value = (nn.Linear(3, 2, bias=False) for _ in range(3))
    output = nn.Linear(2, 2)

    module = MultiHeadAttention(d_model=4, n_heads=2)
    columns = [0, 2]  # head 0 and head 1 each have one number of their own, and one zero
    state = {name: torch.zeros_like(tensor) for name, tensor in module.state_dict().items()}
    state["w_q.weight"][columns, :3] = query.weight.detach() * math.sqrt(2)
    state["w_k.weight"][columns, :3] = key.weight.detach()
    state["w_v.weight"][columns, :3] = value.weight.detach()
    state["w_o.weight"][:2, columns] = output.weight.detach()
    state["w_o.bias"][:2] = output.bias.detach()
    module.load_state_dict(state)

    x = nn.functional.pad(torch.tensor([INPUTS, INPUTS]), (0, 1))
    with torch.no_grad():
        got, weights = module(x, mask=causal_mask(6))
    for sentence in got:
        torch.testing.assert_close(sentence[:, :2], torch.tensor(PRINTED), atol=6e-5, rtol=0)
    assert (weights.triu(1) == 0).all()

    values = split_heads(module.w_v(x), 2)
    merged = merge_heads(weights @ values)
    torch.testing.assert_close(module.w_o(merged), got)
