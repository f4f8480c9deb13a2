"""Two layers of attention: plain, with a learned sink, or with a gate after the heads."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from attention.dot_product import masked_softmax, scaled_scores
from attention.masks import with_causal
from attention.multihead import MultiHeadAttention
from attention.positions.learned import LearnedPositions
from attention.trained.attention_sink.data import LENGTH, VOCAB_SIZE

D_MODEL, N_HEADS, N_LAYERS = 32, 2, 2


class LearnedSink(nn.Module):
    """Dot-product attention with one more place for the weight: a score of the head, with no value.

    The score is a parameter, the same for every query. It enters the sum that softmax divides by,
    so that the weights of the keys sum to less than 1, and to almost nothing where every key scores
    low. No token has to take the rest.

    Parameter by name: `sink` (heads).

    Source:
        OpenAI 2025 (gpt-oss), "Attention"; Xiao et al. 2023, §3.3, give the sink a key of its own.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention
        >>> from attention.trained.attention_sink import LearnedSink
        >>> attention = MultiHeadAttention(8, 2, bias=False, attend=LearnedSink(n_heads=2))
        >>> _, weights = attention(torch.zeros(1, 3, 8))
        >>> weights.sum(-1)[0, 0]  # three keys and the sink, all of score 0
        tensor([0.7500, 0.7500, 0.7500], grad_fn=<SelectBackward0>)
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.sink = nn.Parameter(torch.zeros(n_heads))

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch heads key d_key"],
        v: Float[Tensor, "batch heads key d_value"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch heads query d_value"], Float[Tensor, "batch heads query key"]]:
        """Attend in every head, as `DotProduct.forward` does; the weights are returned in any case.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, heads, key, d_key).
            v: (batch, heads, key, d_value).
            mask: as in `DotProduct.forward`.
            causal: likewise.
            need_weights: changes nothing.
        """
        mask = with_causal(mask, q, k) if causal else mask
        scores = scaled_scores(q, k)
        sink = self.sink[:, None, None].expand(*scores.shape[:-1], 1)
        if mask is not None:  # the mask never hides the sink
            mask = F.pad(mask.expand(*mask.shape[:-1], k.shape[-2]), (0, 1), value=True)
        weights = masked_softmax(torch.cat((scores, sink), dim=-1), mask)[..., :-1]
        return weights @ v, weights


class GatedLayer(nn.Module):
    """Multi-head attention whose merged heads pass through a gate: a sigmoid of the row that asks.

    A gate near 0 silences a head's numbers, wherever its weights lie.

    Source:
        Qiu et al. 2025, §2: the gate after the scaled dot products, elementwise.

    Example:
        >>> import torch
        >>> from attention.trained.attention_sink import GatedLayer
        >>> output, weights = GatedLayer(d_model=8, n_heads=2)(torch.randn(1, 3, 8), causal=True)
        >>> output.shape, weights.shape
        (torch.Size([1, 3, 8]), torch.Size([1, 2, 3, 3]))
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.heads = MultiHeadAttention(d_model, n_heads, bias=False)
        self.to_gate = nn.Linear(d_model, d_model, bias=False)
        # The gate is between the heads and the projection of what they say.
        self.w_o, self.heads.w_o = self.heads.w_o, nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
    ) -> tuple[Float[Tensor, "batch seq d_model"], Float[Tensor, "batch heads seq seq"]]:
        """Attend, and let each number of the merged heads through as far as its gate is open.

        Args:
            x: (batch, seq, d_model).
            mask: (query, key), True = may attend.
            causal: whether the future is hidden as well.
        """
        merged, weights = self.heads(x, mask=mask, causal=causal)
        return self.w_o(merged * self.to_gate(x).sigmoid()), weights


def plain() -> nn.Module:
    return MultiHeadAttention(D_MODEL, N_HEADS, bias=False)


def with_sink() -> nn.Module:
    return MultiHeadAttention(D_MODEL, N_HEADS, bias=False, attend=LearnedSink(N_HEADS))


def gated() -> nn.Module:
    return GatedLayer(D_MODEL, N_HEADS)


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "plain": plain,
    "learned-sink": with_sink,
    "gated": gated,
}
STORED = ("plain", "learned-sink")  # the kinds whose weights come with the package


class SinkModel(nn.Module):
    """Two layers of causal self-attention, each added to what enters it, and a read-out.

    Modules by name: `embedding`, an nn.Embedding; `positions`, learned; `layers`; and `to_next`, an
    nn.Linear(d_model, vocab_size). Nothing has a bias.

    Args:
        layer: one of `LAYERS`.

    Example:
        >>> import torch
        >>> from attention.trained.attention_sink import SinkModel, draw_sequences
        >>> sequences = draw_sequences(3, torch.Generator().manual_seed(0))
        >>> logits, weights = SinkModel("plain")(sequences.token_ids[:, :-1])
        >>> logits.shape, len(weights), weights[0].shape
        (torch.Size([3, 32, 32]), 2, torch.Size([3, 2, 32, 32]))
    """

    def __init__(self, layer: str) -> None:
        super().__init__()
        if layer not in LAYERS:
            raise ValueError(f"layer must be one of {', '.join(LAYERS)}, got {layer!r}")
        self.embedding = nn.Embedding(VOCAB_SIZE + 1, D_MODEL)
        self.positions = LearnedPositions(D_MODEL, LENGTH + 1)
        with torch.no_grad():
            self.positions.table.mul_(0.02)
        self.layers = nn.ModuleList(LAYERS[layer]() for _ in range(N_LAYERS))
        self.to_next = nn.Linear(D_MODEL, VOCAB_SIZE, bias=False)

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """The layers whose heads `without_head` can switch off."""
        return [getattr(layer, "heads", layer) for layer in self.layers]

    def forward(
        self,
        token_ids: Int64[Tensor, "batch seq"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch seq vocab_size"], list[Float[Tensor, "batch heads seq seq"]]]:
        """Predict the token that follows each.

        Args:
            token_ids: (batch, seq), at most 33, the start mark first.
            mask: (query, key), True = may attend, in addition to the causal mask; for all layers.

        Returns:
            A logit for each token that may come next, (batch, seq, vocab_size), and the weights
            (batch, heads, seq, seq) of each layer.
        """
        x = self.positions(self.embedding(token_ids))
        weights = []
        for layer in self.layers:
            output, of_layer = layer(x, mask=mask, causal=True)
            x = x + output
            weights.append(of_layer)
        return self.to_next(x), weights
