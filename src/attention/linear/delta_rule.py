"""Decay and the delta rule: what a state of fixed size gives up before it takes in the next token.

Causal linear attention keeps one matrix for each head, S = Σ k_j v_jᵀ, and answers a query with
Sᵀ q. It only ever adds. More than d_key keys cannot all be at right angles, so their answers mix;
and a key that is written twice answers with the sum of its values.

Two rules change the old state before the new token is written, and a third combines them::

    S_t = α_t S_{t-1} + k_t v_tᵀ                                       decay
    S_t = S_{t-1} + k_t β_t (v_t - S_{t-1}ᵀ k_t)ᵀ                      the delta rule
    S_t = α_t S_{t-1} + k_t β_t (v_t - α_t S_{t-1}ᵀ k_t)ᵀ              the gated delta rule

Decay forgets everything equally: after t more tokens, what was written has the product of t factors
α as its weight. The delta rule reads what the state answers to k_t, and writes only the difference
to v_t: with a key of length 1 and β = 1 the state then answers k_t with v_t, and what is stored
under keys at right angles to k_t stays as it was. What is stored under keys at other angles
changes: the newest token is read exactly, at the price of older ones. Nothing is divided by a sum
of weights.

The paper on Gated DeltaNet writes the state transposed, with values in rows: S_t = S_{t-1} α_t (I -
β_t k_t k_tᵀ) + β_t v_t k_tᵀ. The one on Kimi Linear (equation 1) has keys in rows, as here: (d_key,
d_value), as in `linear_attention_step`.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    require_dtype,
    require_dtype_of,
    require_heads,
    require_n_heads,
    require_padding_mask,
    require_size,
    require_vectors,
)
from attention.heads import merge, split
from attention.masks import kept_keys
from attention.precision import to_float32

CHUNK = 64  # tokens that are taken at once


def decayed_linear_attention(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    alpha: Float[Tensor, "#batch #heads #seq"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    chunk: int = CHUNK,
    state: Float[Tensor, "batch heads d_key d_value"] | None = None,
) -> tuple[Float[Tensor, "batch heads seq d_value"], Float[Tensor, "batch heads d_key d_value"]]:
    """Causal linear attention whose state fades: S_t = α_t S_{t-1} + k_t v_tᵀ, o_t = S_tᵀ q_t.

    In other words o_i = Σ_j (α_{j+1} ⋯ α_i) (q_i·k_j) v_j over the tokens j up to i. With a
    constant α for each head this is the retention of RetNet, whose rotation of queries and keys,
    gate and norm are left out. With one α from each token it is the decay of Mamba-2, which scales
    what a token writes by the step that its α is made from; to do so, multiply the values by that
    step. The sum is not normalised, and queries are not scaled.

    Args:
        query: (batch, heads, seq, d_key).
        key: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        alpha: what part of the state is kept at each token, from 0 to 1, (batch, heads, seq); an
            axis may have size 1, as in (1, heads, 1) for a constant of each head. In bfloat16 the
            next number below 1 is 1 - 1/256, and 0.999 rounds to 1: make α, and all the rest with
            it, in float32.
        mask: which tokens are not padding, (batch, 1, 1, seq) as `padding_mask` makes it. Padding
            leaves the state alone: it neither writes to the state nor lets it fade.
        chunk: how many tokens are taken at once. It changes the cost, not the result.
        state: (batch, heads, d_key, d_value), as the call for the earlier tokens returned it; zeros
            unless given. It is float32 where the tokens are of half precision, and is not changed
            in place.

    Returns:
        The output (batch, heads, seq, d_value), and the state after the last token. Given the state
        and one token, the call is a step of the recurrence.

    Raises:
        ValueError: for a mask that differs between queries, and for shapes that do not fit.
        TypeError: for an alpha or a state of another dtype.

    Cost:
        O(n · (chunk · (d_key + d_value) + d_key · d_value)) time, memory besides input and output
        O(chunk² + d_key · d_value); with gradients O(n · (chunk + d_key + d_value) + n / chunk ·
        d_key · d_value).
        torch.export takes one length at a time, because the length decides how many chunks are
        computed.

    Source:
        Sun et al. 2023, §2.1 (RetNet: chunks) and §2.2 (one α for each head); Dao and Gu 2024
        (Mamba-2), §6 (chunks).

    Example:
        >>> import torch
        >>> from attention import decayed_linear_attention
        >>> query = key = torch.ones(1, 1, 3, 1)
        >>> value = torch.tensor([8.0, 0.0, 1.0]).view(1, 1, 3, 1)
        >>> output, state = decayed_linear_attention(query, key, value, torch.full((1, 1, 1), 0.5))
        >>> output.flatten()  # 8, then 8/2 + 0, then 8/4 + 0/2 + 1
        tensor([8., 4., 3.])
    """
    require_recurrent_inputs(
        query, key, value, {"alpha": alpha}, mask, state, "decayed_linear_attention"
    )
    require_size("chunk", chunk)
    return carry_state(query, key, value, None, alpha, mask, state, chunk=chunk)


def gated_delta_rule(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    beta: Float[Tensor, "#batch #heads #seq"],
    alpha: Float[Tensor, "#batch #heads #seq"] | None = None,
    mask: Bool[Tensor, "..."] | None = None,
    *,
    chunk: int = CHUNK,
    state: Float[Tensor, "batch heads d_key d_value"] | None = None,
) -> tuple[Float[Tensor, "batch heads seq d_value"], Float[Tensor, "batch heads d_key d_value"]]:
    """S_t = α_t S_{t-1} + k_t β_t (v_t - α_t S_{t-1}ᵀ k_t)ᵀ, o_t = S_tᵀ q_t, chunk by chunk.

    Without alpha nothing fades, and this is the delta rule (DeltaNet). Nothing is normalised or
    scaled here. The keys should have length 1, as `GatedDeltaNetAttention` makes them: a token
    removes the part β ‖k‖² of what is stored under its key, and where this part stays above 2 for
    long and little fades, the state grows without bound.

    Within a chunk a token's correction depends on those before it: u_i = β_i (v_i - what the state
    answers), and the state holds k_j u_jᵀ of all j < i. Together these equations are the rows of a
    triangular system, which is solved at once (the papers' WY representation).

    Args:
        query: (batch, heads, seq, d_key).
        key: (batch, heads, seq, d_key), of length 1.
        value: (batch, heads, seq, d_value).
        beta: what part of the error is corrected at each token, from 0 to 1, (batch, heads, seq);
            an axis may have size 1.
        alpha: what part of the state is kept at each token, as for `decayed_linear_attention`;
            everything unless given.
        mask: which tokens are not padding, (batch, 1, 1, seq) as `padding_mask` makes it. Padding
            leaves the state alone.
        chunk: how many tokens are taken at once. It changes the cost, not the result.
        state: (batch, heads, d_key, d_value), as for `decayed_linear_attention`.

    Returns:
        The output (batch, heads, seq, d_value), and the state after the last token.

    Raises:
        ValueError: for a mask that differs between queries, and for shapes that do not fit.
        TypeError: for a beta, an alpha or a state of another dtype.

    Cost:
        As for `decayed_linear_attention`, with up to three quarters more time.
        torch.export takes one length at a time, because the length decides how many chunks are
        computed.

    Source:
        Yang, Kautz and Hatamizadeh 2024, §3.1 and §3.3; Yang et al. 2024, §3 (without α); Schlag et
        al. 2021, §4.2 (the rule).

    Example:
        >>> import torch
        >>> from attention import gated_delta_rule
        >>> key = torch.eye(2)[[0, 1, 0]].view(1, 1, 3, 2)  # the first key comes again
        >>> value = torch.tensor([5.0, 7.0, 6.0]).view(1, 1, 3, 1)
        >>> output, state = gated_delta_rule(key, key, value, torch.ones(1, 1, 1))
        >>> state.flatten()  # 6 has taken the place of 5; 7 stays
        tensor([6., 7.])
    """
    gates = {"beta": beta} if alpha is None else {"beta": beta, "alpha": alpha}
    require_recurrent_inputs(query, key, value, gates, mask, state, "gated_delta_rule")
    require_size("chunk", chunk)
    return carry_state(query, key, value, beta, alpha, mask, state, chunk=chunk)


def gated_delta_rule_step(
    query: Float[Tensor, "batch heads 1 d_key"],
    key: Float[Tensor, "batch heads 1 d_key"],
    value: Float[Tensor, "batch heads 1 d_value"],
    beta: Float[Tensor, "#batch #heads 1"],
    alpha: Float[Tensor, "#batch #heads 1"] | None = None,
    state: Float[Tensor, "batch heads d_key d_value"] | None = None,
) -> tuple[Float[Tensor, "batch heads 1 d_value"], Float[Tensor, "batch heads d_key d_value"]]:
    """Write the next token and answer its query: (output, state).

    Token by token, this gives what `gated_delta_rule` gives for all tokens at once.

    Args:
        query: (batch, heads, 1, d_key), of one token.
        key: (batch, heads, 1, d_key), of the same token and of length 1.
        value: (batch, heads, 1, d_value), of the same token.
        beta: (batch, heads, 1), as for `gated_delta_rule`.
        alpha: (batch, heads, 1), as for `gated_delta_rule`.
        state: (batch, heads, d_key, d_value), None before the first token. It is not changed in
            place, and it is float32 where the tokens are of half precision.

    Returns:
        output (batch, heads, 1, d_value), and the state to hand over with the next token.

    Raises:
        ValueError: for several tokens, and for shapes that do not fit.
        TypeError: for a beta, an alpha or a state of another dtype.

    Cost:
        O(d_key · d_value) time and memory, however long the sequence is.

    Source:
        Yang, Kautz and Hatamizadeh 2024, §3.1.

    Example:
        >>> import torch
        >>> from attention import gated_delta_rule_step
        >>> key, beta = torch.tensor([[[[1.0, 0.0]]]]), torch.ones(1, 1, 1)
        >>> _, state = gated_delta_rule_step(key, key, torch.tensor([[[[5.0]]]]), beta)
        >>> value = torch.tensor([[[[6.0]]]])
        >>> output, _ = gated_delta_rule_step(key, key, value, beta, state=state)
        >>> output.item()  # the sum would be 11
        6.0
    """
    gates = {"beta": beta} if alpha is None else {"beta": beta, "alpha": alpha}
    require_recurrent_inputs(query, key, value, gates, None, state, "gated_delta_rule_step")
    if query.shape[-2] != 1:
        raise ValueError(
            f"a step takes one token, got {query.shape[-2]} in query of shape "
            f"{tuple(query.shape)}; gated_delta_rule takes several"
        )
    dtype = query.dtype
    with torch.autocast(query.device.type, enabled=False):
        query, key, value, beta = (to_float32(x) for x in (query, key, value, beta))
        state = no_state(key, value) if state is None else state
        if alpha is not None:
            state = to_float32(alpha)[..., None] * state
        error = value - key @ state
        state = state + key.mT @ (beta[..., None] * error)
        return (query @ state).to(dtype), state


def require_recurrent_inputs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    gates: dict[str, Tensor],
    mask: Tensor | None,
    state: Tensor | None,
    mechanism: str,
) -> None:
    """Require query, key and value per head, and gates, a mask and a state that fit them."""
    require_heads(query, key, value)
    tokens, n_keys = tuple(query.shape[:-1]), key.shape[-2]
    if tokens[-1] != n_keys:
        raise ValueError(
            f"{mechanism} needs one query for each key, got {tokens[-1]} queries and {n_keys} keys;"
            " to go on after earlier tokens, hand over the state that they left"
        )
    for name, gate in gates.items():
        if not isinstance(gate, Tensor):
            raise TypeError(
                f"{name} must be a tensor, got {type(gate).__name__}; for one number write "
                f"torch.full((1, 1, 1), {name})"
            )
        require_dtype(name, gate, "query", query.dtype)
        sizes = zip(gate.shape, tokens, strict=False)
        if gate.ndim != 3 or any(size not in (1, whole) for size, whole in sizes):
            raise ValueError(
                f"{name} must have shape (batch, heads, seq) = {tokens}, or size 1 on some of "
                f"these axes, got {tuple(gate.shape)}"
            )
    if mask is not None:
        hides_the_future = f"{mechanism}, which hides the future by itself,"
        require_padding_mask(mask, (*tokens, n_keys), hides_the_future)
    if state is not None:
        if not isinstance(state, Tensor):
            raise TypeError(f"state must be a tensor or None, got {type(state).__name__}")
        expected = (*tokens[:2], key.shape[-1], value.shape[-1])
        if state.shape != expected:
            raise ValueError(
                "state must be what the tokens before left, (batch, heads, d_key, d_value) = "
                f"{expected}, got {tuple(state.shape)}"
            )
        wide = to_float32(query[:0]).dtype
        if state.dtype != wide:
            raise TypeError(f"state must be what the tokens before left, {wide}, got {state.dtype}")


def no_state(key: Tensor, value: Tensor) -> Tensor:
    """The state before the first token."""
    return key.new_zeros(*key.shape[:2], key.shape[-1], value.shape[-1])


def decays(alpha: Float[Tensor, "... chunk"]) -> Float[Tensor, "... chunk chunk"]:
    """α_{j+1} ⋯ α_i, what is left at token i of what token j wrote; 0 where j comes after i.

    Products of numbers up to 1 cannot overflow, while quotients of two products taken from the
    start can.
    """
    size = alpha.shape[-1]
    later = torch.ones(size, size, dtype=torch.bool, device=alpha.device).tril(-1)
    return torch.where(later, alpha[..., None], 1.0).cumprod(-2).tril()


def carry_state(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    beta: Float[Tensor, "#batch #heads #seq"] | None,
    alpha: Float[Tensor, "#batch #heads #seq"] | None,
    mask: Bool[Tensor, "..."] | None,
    state: Float[Tensor, "batch heads d_key d_value"] | None,
    *,
    chunk: int = CHUNK,
) -> tuple[Float[Tensor, "batch heads seq d_value"], Float[Tensor, "batch heads d_key d_value"]]:
    """`gated_delta_rule` without its argument checks; with beta None, decay alone."""
    dtype, seq = query.dtype, query.shape[2]
    with torch.autocast(query.device.type, enabled=False):
        query, key, value = to_float32(query), to_float32(key), to_float32(value)
        corrects, ones = beta is not None, key.new_ones(1, 1, 1)
        gates = [ones if gate is None else to_float32(gate) for gate in (alpha, beta)]
        alpha, beta = (gate.expand(-1, -1, seq)[..., None] for gate in gates)
        if mask is not None:
            kept = kept_keys(key, mask)
            key, value = (x.masked_fill(~kept, 0.0) for x in (key, value))
            alpha, beta = alpha.where(kept, 1.0), beta.where(kept, 0.0)
        state = no_state(key, value) if state is None else state
        outputs = []
        for q, k, v, b, a in zip(
            *(x.split(chunk, dim=2) for x in (query, key, value, beta, alpha)), strict=True
        ):
            left, since_start = decays(a[..., 0]), a.cumprod(2)  # of a token, and of the state
            written = v
            if corrects:
                # u_i + Σ_{j<i} β_i left_ij (k_i·k_j) u_j = β_i (v_i - what the state answers)
                error = b * (v - since_start * (k @ state))
                written = torch.linalg.solve_triangular(
                    b * left * (k @ k.mT), error, upper=False, unitriangular=True
                )
            outputs.append(since_start * (q @ state) + (left * (q @ k.mT)) @ written)
            state = since_start[:, :, -1:] * state + (left[:, :, -1:].mT * k).mT @ written
        return torch.cat(outputs, dim=2).to(dtype), state


class GatedDeltaNetAttention(nn.Module):
    """Multi-head causal self-attention by the gated delta rule.

    Queries, keys and values go through SiLU, x · sigmoid(x); without it, small models learned to
    recall less reliably here. Queries and keys are then divided by their length. Each head has two
    gates, which every token sets: β_t = sigmoid(w_beta(x_t)), how much of the error it corrects,
    and α_t = exp(-exp(log_rate) · softplus(w_alpha(x_t))), how much of the state it keeps.

    Parameters by name: `w_q`, `w_k`, `w_v` and `w_o` as in `MultiHeadAttention`; `w_beta` and
    `w_alpha`, from d_model to n_heads; `log_rate` (n_heads).

    The paper's layer has more parts, which are left out here: before the SiLU, short convolutions
    over neighbouring queries, keys and values; a norm of every head's output, and a gate on it; and
    values wider than the keys. Without convolutions, a token learns what the previous token said
    through the state alone, so a task that binds a key to the next token's value needs another
    layer before this one.

    Args:
        d_model, n_heads: as for `MultiHeadAttention`.
        bias: whether the projections have biases. `w_alpha` has one in any case, which sets how
            fast a head forgets before training.

    Source:
        Yang, Kautz and Hatamizadeh 2024, §3.4; the gate α from Dao and Gu 2024.

    Example:
        >>> import torch
        >>> from attention import GatedDeltaNetAttention
        >>> module = GatedDeltaNetAttention(d_model=8, n_heads=2)
        >>> output, weights = module(torch.randn(3, 50, 8))
        >>> output.shape, weights
        (torch.Size([3, 50, 8]), None)
    """

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
        self.d_model, self.n_heads = d_model, n_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.w_beta = nn.Linear(d_model, n_heads, bias=bias)
        self.w_alpha = nn.Linear(d_model, n_heads)
        self.log_rate = nn.Parameter(torch.empty(n_heads).uniform_(1, 16).log())
        with torch.no_grad():
            # Mamba-2's start: softplus(bias) from 0.001 to 0.1, evenly on a logarithmic scale.
            steps = torch.empty(n_heads).uniform_(math.log(0.001), math.log(0.1)).exp()
            self.w_alpha.bias.copy_(steps.expm1().log())

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch seq d_model"], None]:
        """Attend from every token to those up to it, as `MultiHeadAttention.forward` does.

        There is no argument for keys, because a token's gates belong to its key and query alike.

        Args:
            x: (batch, seq, d_model).
            mask: which tokens are not padding, (batch, 1, 1, seq), as for `gated_delta_rule`.
            causal: changes nothing: a state has read only the past, so the future is hidden anyway.
            need_weights: changes nothing: no weights are made.

        Raises:
            ValueError, TypeError: as `gated_delta_rule` does.
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        require_dtype_of(self, x=x)
        batch, seq, _ = x.shape
        if mask is not None:
            hides_the_future = "GatedDeltaNetAttention, which hides the future by itself,"
            require_padding_mask(mask, (batch, self.n_heads, seq, seq), hides_the_future)
        projected = (split(w(x), self.n_heads) for w in (self.w_q, self.w_k, self.w_v))
        q, k, v = (F.silu(to_float32(y)) for y in projected)
        beta = to_float32(self.w_beta(x)).sigmoid().mT
        rate = to_float32(self.log_rate).exp()[:, None]
        # contiguous: softplus's gradient of a transposed tensor stops AOTAutograd's graph.
        speed = F.softplus(to_float32(self.w_alpha(x)).mT.contiguous())
        alpha = (-rate * speed).exp()
        output, _ = carry_state(of_length_1(q), of_length_1(k), v, beta, alpha, mask, None)
        return self.w_o(merge(output).to(x.dtype)), None


def of_length_1(x: Tensor) -> Tensor:
    """x / ‖x‖; near 0 a little less than that, so that the gradient stays bounded."""
    return x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()
