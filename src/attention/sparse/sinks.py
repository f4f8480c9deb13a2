"""Attention sinks: a causal window that always sees the first few tokens too.

The weights of a softmax sum to 1, so a head that finds nothing to look at must still look
somewhere. In the trained decoders that Xiao et al. 2023 looked at, much of that weight lies on the
first tokens, which every query sees, whatever these tokens say. They are sinks. A window leaves
them behind. Their weight then falls on tokens that mean something, and the outputs go wrong. The
repair needs no training: each query also sees the first few tokens, four in Xiao et al. 2023
(§3.1).

No separate function computes this. `sparse_attention` with a window, `causal=True` and
`global_tokens=range(n_sinks)` is exactly attention under `sink_mask`. As global tokens, the first
tokens would attend to all tokens, but where causal they attend to no more than each other, and all
later tokens attend to them. Each query takes at most window + n_sinks + 1 scores, O(n · (window +
n_sinks)) in all instead of O(n²). The function asks for positions that exist, so a text shorter
than n_sinks takes range(seq).

Sinks shorten no path but their own: what they themselves say reaches every token in one layer. A
global token in the middle of a text collects what came before it and hands it on. Before the first
tokens there is nothing to collect, so everything else that lies before the window is reached only
through layers, `window` tokens with each.

A decoder needs no keys other than these. `RollingCache`, among the caches, keeps them.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from attention.arguments import require_size


def sink_mask(
    seq: int, window: int, n_sinks: int, *, device: torch.device | str | None = None
) -> Bool[Tensor, "seq seq"]:
    """True where the key is the query's own, at most window before it, or one of the first n_sinks.

    Args:
        seq: how many tokens.
        window: how many keys besides the query's own, all of them before it.
        n_sinks: how many of the first tokens are seen by all later ones; with 0, only the window is
            left. No query sees its future, and neither does a sink.
        device: where the mask is made; torch's default unless given.

    Returns:
        The mask, (query, key).

    Raises:
        ValueError: for a negative number, and for no tokens.

    Source:
        Xiao et al. 2023 (StreamingLLM), §3.2.

    Example:
        >>> import torch
        >>> from attention import fused_attention, sink_mask, sparse_attention
        >>> sink_mask(5, window=1, n_sinks=1)[4].int()
        tensor([1, 0, 0, 1, 1], dtype=torch.int32)
        >>> x = torch.randn(1, 2, 300, 8)
        >>> output = sparse_attention(x, x, x, window=32, global_tokens=range(4), causal=True)
        >>> torch.allclose(output, fused_attention(x, x, x, sink_mask(300, 32, 4)), atol=1e-5)
        True
    """
    require_size("seq", seq)
    require_size("window", window, least=0)
    require_size("n_sinks", n_sinks, least=0)
    key = torch.arange(seq, device=device)
    query = key[:, None]
    return (key <= query) & ((key >= query - window) | (key < n_sinks))
