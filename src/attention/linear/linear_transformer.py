"""Linear attention: the weight of a key is φ(q)·φ(k) with φ(x) = elu(x) + 1.

Scaled dot-product attention takes exp(q·k / √d_key) as the weight and divides by the sum of all
weights. Here the features φ are a fixed positive function of each vector, so the sums over the keys
are taken once for all queries, and time grows as n. The weights differ from softmax's and are
flatter, so a model has to be trained with them.

With a causal mask the sums make linear attention a recurrent network: the state is one matrix for
each head, and a token costs the same however many came before it.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import require_size
from attention.linear.feature_maps import (
    CHUNK,
    attend_through_features,
    require_feature_map_inputs,
)
from attention.precision import to_float32


def elu_plus_one(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """elu(x) + 1: x + 1 where x is positive, eˣ elsewhere, and so positive everywhere.

    PyTorch's F.elu(x) + 1 takes one operation less, but it loses eˣ beside the 1 that it subtracts
    and adds again: below -17 nothing of eˣ is left in float32.

    Args:
        x: a tensor of any shape, which the result has too.

    Source:
        Katharopoulos et al. 2020, §3.2.1.

    Example:
        >>> import torch
        >>> from attention import elu_plus_one
        >>> elu_plus_one(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3679, 1.0000, 3.0000])
    """
    if not isinstance(x, Tensor) or not x.is_floating_point():
        got = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of floating-point numbers, got {got}")
    return EluPlusOne.apply(x)


class EluPlusOne(torch.autograd.Function):
    """elu(x) + 1 with its derivative, 1 above 0 and eˣ below, which is the result capped at 1.

    Autograd's own derivative would keep four tensors, while this one keeps the result.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return F.relu(x) + x.clamp(max=0.0).exp()

    @staticmethod
    def setup_context(ctx, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> Tensor:
        (output,) = ctx.saved_tensors
        return grad_output * output.clamp(max=1.0)


def linear_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    chunk: int | None = None,
) -> Float[Tensor, "batch heads query d_value"]:
    """Σ_j (φ(q)·φ(k_j)) v_j / Σ_j φ(q)·φ(k_j) with φ = elu + 1.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        mask: which keys are not padding, (batch, 1, 1, key) as `padding_mask` makes it. A query
            that may attend to nothing gets output 0.
        causal: whether query i attends to the keys up to i only; there are as many keys as queries.
        chunk: how many tokens are taken at once; unless given, 128 where causal and 512 elsewhere.
            It changes the cost, not the result.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError: for a mask that differs between queries: no weight of a single query and key is
            made, so there is none to mask.

    Cost:
        O(n · d_key · d_value) time, O(d_key · d_value) memory besides input and output; causal and
        with gradients, see `kernel_attention`. Within a chunk a causal query sees the keys up to
        itself. Packages that leave out a query's own chunk save this work (up to a third of the
        time for short sequences), but they lose the nearest keys.
        torch.export takes one length at a time, because the length decides how many chunks are
        computed.

    Source:
        Katharopoulos et al. 2020, §3.2 and §3.3.

    Example:
        >>> import torch
        >>> from attention import elu_plus_one, linear_attention
        >>> x = torch.randn(1, 2, 50, 8)
        >>> weights = elu_plus_one(x) @ elu_plus_one(x).transpose(-2, -1)
        >>> weights = weights / weights.sum(-1, keepdim=True)
        >>> torch.allclose(linear_attention(x, x, x), weights @ x, atol=1e-5)
        True
    """
    require_feature_map_inputs(query, key, value, mask, causal, "linear attention")
    if chunk is None:
        chunk = CHUNK if causal else 4 * CHUNK  # where causal, a chunk makes its weights after all
    require_size("chunk", chunk)
    return attend_through_features(
        query, key, value, mask, feature_map=elu_plus_one, causal=causal, chunk=chunk
    )


def linear_attention_step(
    query: Float[Tensor, "batch heads 1 d_key"],
    key: Float[Tensor, "batch heads 1 d_key"],
    value: Float[Tensor, "batch heads 1 d_value"],
    state: Float[Tensor, "batch heads d_key d_value+1"] | None = None,
) -> tuple[Float[Tensor, "batch heads 1 d_value"], Float[Tensor, "batch heads d_key d_value+1"]]:
    """Attend from the next token to itself and all before it: (output, state).

    Token by token, this gives what `linear_attention(…, causal=True)` gives for all tokens at once.

    Args:
        query: (batch, heads, 1, d_key), of one token.
        key: (batch, heads, 1, d_key), of the same token.
        value: (batch, heads, 1, d_value), of the same token.
        state: (batch, heads, d_key, d_value + 1), None before the first token. Its first columns
            are the paper's S = Σ φ(k_j) v_jᵀ, and its last one is Z = Σ φ(k_j). It is not changed
            in place, and it is float32 where the tokens are of half precision, in which a sum over
            thousands of tokens would stop growing.

    Returns:
        output (batch, heads, 1, d_value), and the state to hand over with the next token.

    Raises:
        ValueError: for several tokens, for a state of another batch, other heads or other sizes.
        TypeError: for a state of another dtype.

    Cost:
        O(d_key · d_value) time and memory, however long the sequence is.

    Source:
        Katharopoulos et al. 2020, §3.4.

    Example:
        >>> import torch
        >>> from attention import linear_attention, linear_attention_step
        >>> x, state, outputs = torch.randn(1, 2, 5, 4), None, []
        >>> for token in x.split(1, dim=2):
        ...     output, state = linear_attention_step(token, token, token, state)
        ...     outputs.append(output)
        >>> together = linear_attention(x, x, x, causal=True)
        >>> torch.allclose(torch.cat(outputs, dim=2), together, atol=1e-5)
        True
    """
    require_feature_map_inputs(query, key, value, None, True, "linear attention")
    if query.shape[-2] != 1:
        raise ValueError(
            f"a step takes one token, got {query.shape[-2]} in query of shape "
            f"{tuple(query.shape)}; linear_attention(…, causal=True) takes several"
        )
    dtype = query.dtype
    with torch.autocast(query.device.type, enabled=False):
        query, key, value = to_float32(query), to_float32(key), to_float32(value)
        added = elu_plus_one(key).transpose(-2, -1) @ F.pad(value, (0, 1), value=1.0)
        if state is not None:
            require_state(state, added)
        state = added if state is None else state + added
        sums = elu_plus_one(query) @ state
        total = sums[..., -1:]
        return (sums[..., :-1] / torch.where(total == 0, 1.0, total)).to(dtype), state


def require_state(state: Tensor, added: Tensor) -> None:
    """Require a state to which `added` can be added."""
    if not isinstance(state, Tensor):
        raise TypeError(f"state must be a tensor or None, got {type(state).__name__}")
    if state.shape != added.shape:
        raise ValueError(
            "state must be what the step before returned, (batch, heads, d_key, d_value + 1)"
            f" = {tuple(added.shape)} for this token, got {tuple(state.shape)}"
        )
    if state.dtype != added.dtype:
        raise TypeError(
            f"state must be what the step before returned, {added.dtype}, got {state.dtype}"
        )
