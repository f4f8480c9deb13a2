"""A published model with less of what its attention uses: turns, numbers for a token, keys.

Each change is made in all layers at once and without training, so that its price says what the
model had there.
"""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_size
from attention.pretrained.mistakes import masked_softmax, sharing_weights
from attention.transformer.decoder_only import DecoderOnly

Weigh = Callable[[Tensor, Tensor], Tensor]  # as `StepwiseAttention` takes it


def still(pairs: slice) -> Callable[[Tensor], Tensor]:
    """For `Rotary`: some pairs of components do not turn at all.

    Args:
        pairs: which ones, from the fastest, 0, to the slowest.

    Example:
        >>> import torch
        >>> from attention.pretrained.changes import still
        >>> still(slice(2, None))(torch.tensor([1.0, 0.1, 0.01]))
        tensor([1.0000, 0.1000, 0.0000])
    """

    def angles(theta: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
        theta = theta.clone()
        theta[pairs] = 0.0
        return theta

    return angles


def best_keys(count: int, *, first: bool = False) -> Weigh:
    """Each query sees only its best keys, by their scores.

    Args:
        count: how many keys.
        first: whether the first key is always among them.

    Example:
        >>> import torch
        >>> from attention.pretrained.changes import best_keys
        >>> scores, sees = torch.tensor([[[[1.0, 3.0, 2.0]]]]), torch.ones(1, 3, dtype=torch.bool)
        >>> best_keys(2, first=True)(scores, sees) > 0
        tensor([[[[ True,  True, False]]]])
    """
    require_size("count", count)

    def weigh(
        scores: Float[Tensor, "batch heads query key"], sees: Bool[Tensor, "query key"]
    ) -> Float[Tensor, "batch heads query key"]:
        ranked = scores.masked_fill(~sees, -torch.inf)
        if first:
            ranked[..., 0] = torch.inf
        return masked_softmax(scores, sees & chosen(ranked, min(count, ranked.shape[-1])))

    return weigh


def best_blocks(count: int, block: int, *, first: bool = False) -> Weigh:
    """Each query sees its own block of keys and the best others, as MoBA chooses them.

    The mean of a block's scores is the score of its mean key.

    Args:
        count: how many blocks, with its own.
        block: how many keys make a block.
        first: whether the first block is always among them.

    Source:
        Lu et al. 2025, §2.2. All scores are computed here, and most of them are thrown away.

    Example:
        >>> import torch
        >>> from attention.pretrained.changes import best_blocks
        >>> scores, sees = torch.zeros(1, 1, 6, 6), torch.ones(6, 6, dtype=torch.bool).tril()
        >>> best_blocks(1, 2)(scores, sees)[0, 0, 5]  # its own block alone
        tensor([0.0000, 0.0000, 0.0000, 0.0000, 0.5000, 0.5000])
    """
    require_size("count", count)
    require_size("block", block)

    def weigh(
        scores: Float[Tensor, "batch heads query key"], sees: Bool[Tensor, "query key"]
    ) -> Float[Tensor, "batch heads query key"]:
        query, key = scores.shape[-2:]
        sums = F.pad(scores, (0, -key % block)).unflatten(-1, (-1, block)).sum(-1)
        blocks = torch.arange(sums.shape[-1])
        sizes = (key - blocks * block).clamp(max=block)
        own = (torch.arange(query) // block)[:, None]
        ranked = (sums / sizes).masked_fill(blocks > own, -torch.inf)
        if first:
            ranked[..., 0] = torch.inf
        ranked = ranked.masked_fill(blocks == own, torch.inf)
        among = chosen(ranked, min(count, len(blocks))).repeat_interleave(block, dim=-1)
        return masked_softmax(scores, sees & among[..., :key])

    return weigh


def chosen(ranked: Float[Tensor, "... key"], count: int) -> Bool[Tensor, "... key"]:
    best = torch.zeros_like(ranked, dtype=torch.bool)
    return best.scatter(-1, ranked.topk(count, dim=-1).indices, True)


class FirstValue(nn.Module):
    """Attention in which what later rows take from the first token is replaced.

    It is called as `DotProduct` is, without a cache.

    Args:
        attend: what attends, with KV heads shared by `group` query heads.
        group: how many query heads share a KV head.
        mean: True for the mean over the later rows of what each takes, False for nothing.
    """

    def __init__(self, attend: nn.Module, group: int, *, mean: bool) -> None:
        super().__init__()
        self.attend, self.group, self.mean = attend, group, mean

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        v: Float[Tensor, "batch kv_heads key d_key"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = True,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch heads query d_key"], Float[Tensor, "batch heads query key"]]:
        """Attend, and replace what comes from the first token.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key).
            v: (batch, kv_heads, key, d_key).
            mask: as for `attend`.
            causal: as for `attend`.
            need_weights: changes nothing: the weights are made in any case.
        """
        heads, weights = self.attend(q, k, v, mask, causal=causal, need_weights=True)
        first = v.repeat_interleave(self.group, dim=1)[:, :, :1]  # (batch, heads, 1, d_key)
        taken = weights[..., 1:, :1] * first
        instead = taken.mean(2, keepdim=True) if self.mean else torch.zeros_like(first)
        return torch.cat([heads[:, :, :1], heads[:, :, 1:] - taken + instead], dim=2), weights


def with_first_value(model: DecoderOnly, value: str, from_layer: int) -> DecoderOnly:
    """Copy a model, with what later rows take from the first token replaced in its later layers.

    Args:
        model: it stays as it is.
        value: "mean", over the later rows of each head, or "nothing".
        from_layer: the first layer that changes.

    Raises:
        ValueError: there is no such value.

    Example:
        >>> import torch
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.changes import with_first_value
        >>> model, ids = DecoderOnly(50, 16, 4, 64, n_layers=2), torch.tensor([[3, 1, 4]])
        >>> changed = with_first_value(model, "nothing", from_layer=1)(ids)[0]
        >>> torch.equal(changed[:, 0], model(ids)[0][:, 0])  # the first row is as it was
        True
    """
    if value not in ("mean", "nothing"):
        raise ValueError(f"value={value!r} must be 'mean' or 'nothing'")
    model = sharing_weights(model)
    for layer in model.layers[from_layer:]:
        attention = layer.self_attention
        group = attention.n_heads // attention.n_kv_heads
        attention.attend = FirstValue(attention.attend, group, mean=value == "mean")
    return model


def with_fewer_numbers(
    model: DecoderOnly, bases: Iterable[Float[Tensor, "_ numbers"]]
) -> DecoderOnly:
    """Copy a model so that its keys and values are made of fewer numbers per token and layer.

    Args:
        model: it stays as it is.
        bases: for each layer, orthonormal rows (kept, numbers): before the keys turn, keys and
            values, side by side, are projected onto them.

    Example:
        >>> import torch
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.changes import with_fewer_numbers
        >>> model, ids = DecoderOnly(50, 16, 4, 64, n_layers=1, bias=False), torch.tensor([[3, 1]])
        >>> same = with_fewer_numbers(model, [torch.eye(32)])
        >>> torch.equal(same(ids)[0], model(ids)[0])
        True
    """
    model = sharing_weights(model)
    for layer, basis in zip(model.layers, bases, strict=True):
        attention = layer.self_attention
        both = torch.cat([attention.w_k.weight, attention.w_v.weight])  # (numbers, d_model)
        halves = (basis.T @ (basis @ both)).chunk(2)
        for name, weight in zip(("w_k", "w_v"), halves, strict=True):
            linear = nn.Linear(*weight.T.shape, bias=False)
            linear.weight = nn.Parameter(weight, requires_grad=False)
            setattr(attention, name, linear)
    return model


def bases_of_weights(model: DecoderOnly, kept: int) -> list[Float[Tensor, "kept numbers"]]:
    """For each layer, the directions in which the matrices of keys and values are largest.

    Args:
        model: without biases in these matrices.
        kept: how many.

    Source:
        The singular value decomposition of chapter 15.

    Example:
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.changes import bases_of_weights
        >>> bases_of_weights(DecoderOnly(50, 16, 4, 64, n_layers=1), 8)[0].shape
        torch.Size([8, 32])
    """
    return [
        largest(torch.cat([layer.self_attention.w_k.weight, layer.self_attention.w_v.weight]), kept)
        for layer in model.layers
    ]


@torch.no_grad()
def bases_of_data(
    model: DecoderOnly, texts: Iterable[Int[Tensor, "1 seq"]], kept: int
) -> list[Float[Tensor, "kept numbers"]]:
    """For each layer, the directions in which the keys and values of texts are largest.

    Args:
        model: it reads the texts.
        texts: (1, seq) token ids each.
        kept: how many.

    Example:
        >>> import torch
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.changes import bases_of_data
        >>> model = DecoderOnly(50, 16, 4, 64, n_layers=1)
        >>> bases_of_data(model, [torch.arange(40)[None]], 8)[0].shape
        torch.Size([8, 32])
    """
    made: list[list[Tensor]] = [[] for _ in model.layers]

    def note(of_layer: list[Tensor]) -> Callable:
        def hook(attention: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            rows = inputs[0][0]  # (seq, d_model)
            of_layer.append(torch.cat([attention.w_k(rows), attention.w_v(rows)], dim=-1))

        return hook

    hooks = [
        layer.self_attention.register_forward_pre_hook(note(of_layer))
        for layer, of_layer in zip(model.layers, made, strict=True)
    ]
    try:
        for ids in texts:
            model.read(ids, need_weights=False)
    finally:
        for hook in hooks:
            hook.remove()
    return [largest(torch.cat(of_layer).T, kept) for of_layer in made]


def largest(columns: Float[Tensor, "numbers many"], kept: int) -> Float[Tensor, "kept numbers"]:
    """The directions of the largest singular values, as rows."""
    return torch.linalg.svd(columns, full_matrices=False).U[:, :kept].T
