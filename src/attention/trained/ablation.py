"""Switching off a head: what is lost without it."""

from attention.multihead import MultiHeadAttention


def switch_off(attention: MultiHeadAttention, head: int) -> None:
    """Set a head's gate to 0, in place; heads that are off already stay off.

    Args:
        attention: its head_gate is made where it is None.
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
        >>> attention.head_gate
        tensor([1., 1., 0., 1.])
    """
    if not 0 <= head < attention.n_heads:
        raise ValueError(f"head={head} must be from 0 to {attention.n_heads - 1}")
    if attention.head_gate is None:
        attention.head_gate = attention.w_o.weight.new_ones(attention.n_heads)
    attention.head_gate[head] = 0
