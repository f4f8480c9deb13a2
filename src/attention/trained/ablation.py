"""Switching off a head: what is lost without it."""

from attention.mechanism import HeadGate
from attention.multihead import MultiHeadAttention


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
        gate = attention.w_o.weight.new_ones(attention.n_heads)
        attention.attend = HeadGate(attention.attend, gate)
    attention.attend.gate[head] = 0
