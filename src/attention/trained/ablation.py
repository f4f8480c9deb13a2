"""Switching off a head: what is lost without it."""

import copy

from torch import nn

from attention.mechanism import HeadGate
from attention.multihead import MultiHeadAttention


def without_head(model: nn.Module, head: int, *, layer: int = 0) -> nn.Module:
    """Copy a model with one head switched off, by the gate of its attention.

    Args:
        model: a model of one of the trained tasks; its `attentions` lists its layers, which for a
            transformer are those of the cross-attention. The model is left as it is.
        head: which one, from 0 to n_heads - 1.
        layer: the layer that the head is in, from 0.

    Raises:
        ValueError: there is no such layer or head.

    Source:
        This book's own; Michel et al. 2019 (§2.3) mask heads one at a time.

    Example:
        >>> from attention.trained import who_and_whom
        >>> from attention.trained.ablation import without_head
        >>> batch = who_and_whom.encode(who_and_whom.new_sentences(count=1000))
        >>> left = who_and_whom.accuracy(without_head(who_and_whom.load(), 0), batch)
        >>> left.who < 0.2, left.whom > 0.9
        (True, True)
    """
    if not 0 <= layer < len(model.attentions):
        raise ValueError(f"layer={layer} must be from 0 to {len(model.attentions) - 1}")
    model = copy.deepcopy(model)
    switch_off(model.attentions[layer], head)
    return model


def switch_off(attention: MultiHeadAttention, head: int) -> None:
    """Set a head's gate to 0, in place; heads that are off already stay off.

    Args:
        attention: a `HeadGate` is put around its `attend` where there is none.
        head: which one, from 0 to n_heads - 1.

    Raises:
        ValueError: there is no such head.

    Source:
        Michel et al. 2019, §2.3.

    Example:
        >>> from attention import MultiHeadAttention
        >>> from attention.trained.ablation import switch_off
        >>> attention = MultiHeadAttention(d_model=8, n_heads=4)
        >>> switch_off(attention, 2)
        >>> attention.attend.gate
        tensor([1., 1., 0., 1.])
    """
    if not 0 <= head < attention.n_heads:
        raise ValueError(f"head={head} must be from 0 to {attention.n_heads - 1}")
    if not isinstance(attention.attend, HeadGate):
        gate = attention.w_q.weight.new_ones(attention.n_heads)
        attention.attend = HeadGate(attention.attend, gate)
    attention.attend.gate[head] = 0
