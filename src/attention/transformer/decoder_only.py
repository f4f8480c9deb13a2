"""The decoder-only transformer: a language model, from token ids to the logits of the next token.

Without a source there is no encoder and no cross-attention. What is left of a decoder layer is an
encoder layer whose self-attention hides the future. GPT-2, Llama and their successors are this
stack with different settings: how positions come in, which norm is used, whether the feed-forward
layer has a gate, how many KV heads there are, and whether the head shares the embedding's table.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    require_dtype_of,
    require_finite,
    require_function,
    require_mask,
    require_module,
    require_shape,
    require_size,
    require_token_ids,
    require_vectors,
)
from attention.cached.rolling_cache import require_keeps
from attention.embedding import TokenEmbedding
from attention.transformer.encoder import Cache, EncoderLayer


class DecoderOnly(nn.Module):
    """An embedding, pre-norm layers of causal self-attention, a norm, and a head.

    Modules by name: `embedding`, `positions` where given, `layers`, each an `EncoderLayer`, `norm`,
    and, unless tied, `head`, a linear layer without bias.

    Args:
        vocab_size: how many tokens there are.
        d_model, n_heads, d_ff: as in `EncoderLayer`.
        n_layers: how many layers.
        positions: adds positions to the embedded tokens, as `LearnedPositions` does; None where
            `attend` knows them, as with `Rotary`.
        attend: makes what attends, once for each layer; a `DotProduct` unless given.
        norm: makes a norm of d_model, such as torch.nn.RMSNorm.
        scaled: whether the embedding is multiplied by √d_model, as the paper's is.
        tied: whether the head's matrix is the embedding's table.
        options: other options of `EncoderLayer`: dropout, activation, gated, bias, n_kv_heads,
            d_key.

    Source:
        Radford et al. 2019, §2.3 (GPT-2); Touvron et al. 2023, §2.2 (Llama). Press and Wolf 2017
        for the tied head.

    Example:
        >>> from functools import partial
        >>> import torch
        >>> from torch.nn import functional as F
        >>> from attention import DecoderOnly, DotProduct, LearnedPositions, Rotary
        >>> gpt2 = DecoderOnly(
        ...     50, 16, 4, 64, n_layers=2, activation=F.gelu, positions=LearnedPositions(16, 100)
        ... )
        >>> llama = DecoderOnly(
        ...     50, 16, 4, 40, n_layers=2, n_kv_heads=2, bias=False, activation=F.silu, gated=True,
        ...     norm=torch.nn.RMSNorm, attend=lambda: DotProduct(transform=Rotary(d_key=4)),
        ... )
        >>> logits, weights = llama(torch.tensor([[3, 1, 4]]))
        >>> logits.shape, len(weights), weights[0].shape
        (torch.Size([1, 3, 50]), 2, torch.Size([1, 4, 3, 3]))
        >>> len(list(gpt2.generate(torch.tensor([[3, 1, 4]]), 5)))
        5
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        n_layers: int,
        positions: nn.Module | None = None,
        attend: Callable[[], nn.Module] | None = None,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        scaled: bool = False,
        tied: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        require_size("n_layers", n_layers)
        if attend is not None:
            require_function("attend", attend, "without arguments that makes what attends")
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id=None, scaled=scaled)
        if positions is not None:
            require_module("positions", positions)
        self.positions = positions
        self.layers = nn.ModuleList(
            EncoderLayer(
                d_model,
                n_heads,
                d_ff,
                norm_first=True,
                norm=norm,
                attend=None if attend is None else attend(),
                **options,
            )
            for _ in range(n_layers)
        )
        self.norm = norm(d_model)
        self.head = None if tied else nn.Linear(d_model, vocab_size, bias=False)

    def forward(
        self,
        token_ids: Int[Tensor, "batch seq"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: list[Cache] | None = None,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch seq vocab"], list[Float[Tensor, "batch heads seq _"] | None] | None
    ]:
        """The logits of the token that follows each token, and each layer's weights.

        Args:
            token_ids: (batch, seq).
            mask: as in `MultiHeadAttention.forward`, in addition to the causal one; for example,
                which tokens are not padding.
            cache: one for each layer, as `new_cache` makes them. The new tokens follow those that
                the caches hold, and the axis `key` of mask and weights counts all of them.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            logits (batch, seq, vocab) and weights (batch, heads, seq, key) for each layer.

        Raises:
            ValueError, TypeError: as `MultiHeadAttention.forward` does. If a later layer refuses,
                the caches of the layers before it already hold the new tokens.
        """
        x, weights = self.read(token_ids, mask, cache=cache, need_weights=need_weights)
        return self.to_logits(x), weights

    def read(
        self,
        token_ids: Int[Tensor, "batch seq"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: list[Cache] | None = None,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch seq d_model"], list[Float[Tensor, "batch heads seq _"] | None] | None
    ]:
        """What `forward` does, up to the head: (batch, seq, d_model), and the weights.

        For every token of a prompt, the head computes a row of logits, one for each token of the
        vocabulary. That is most of the work of a prompt, and to go on writing, only the last row is
        needed.
        """
        require_token_ids(token_ids)
        if cache is not None:
            self.require_cache_for_each_layer(cache)
        x = self.embedding(token_ids)  # (batch, seq, d_model)
        if self.positions is not None:
            x = self.positions(x, 0 if cache is None else cache[0].length)
        weights = []
        for i, layer in enumerate(self.layers):
            of_layer = None if cache is None else cache[i]
            x, layer_weights = layer(
                x, mask, causal=True, cache=of_layer, need_weights=need_weights
            )
            weights.append(layer_weights)
        return self.norm(x), weights if need_weights else None

    def require_cache_for_each_layer(self, cache: list[Cache]) -> None:
        count = len(cache) if isinstance(cache, list) and None not in cache else None
        if count != len(self.layers):
            got = type(cache).__name__ if count is None else count
            raise ValueError(
                f"cache must be a list of one for each of {len(self.layers)} layers, got {got}; "
                "new_cache(batch, max_length) makes them"
            )
        lengths = {getattr(each, "length", None) for each in cache}  # a layer refuses what has none
        if len(lengths) > 1 or len({id(each) for each in cache}) < count:
            raise ValueError(
                "cache must hold another one for each layer, all of one length; "
                "new_cache(batch, max_length) makes them"
            )

    def to_logits(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch seq vocab"]:
        """The head: for each token, the logits of the token that follows it.

        Args:
            x: (batch, seq, d_model), what `read` returns.
        """
        require_vectors("x", x, "batch seq d_model", last=self.embedding.d_model)
        require_dtype_of(self, x=x)
        return F.linear(x, self.embedding.table.weight) if self.head is None else self.head(x)

    def new_cache(self, batch: int, max_length: int) -> list[Cache]:
        """Make an empty cache for each layer, as `MultiHeadAttention.new_cache` does.

        Raises:
            ValueError: a layer's self-attention keeps nothing; read the whole text at every step.
        """
        for layer in self.layers:
            require_keeps(layer.self_attention)
        return [layer.self_attention.new_cache(batch, max_length) for layer in self.layers]

    def generate(
        self,
        token_ids: Int[Tensor, "batch seq"],
        n_new: int,
        *,
        is_token: Bool[Tensor, "batch seq"] | None = None,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        end_id: int | None = None,
        generator: torch.Generator | None = None,
    ) -> Iterator[Int[Tensor, " batch"]]:
        """Write token after token, with a cache: an iterator over the new ids of each step.

        `torch.stack(list(model.generate(…)), dim=1)` returns all the new ids, (batch, new).

        Args:
            token_ids: (batch, seq), the prompts, each ending in the last column. Shorter ones have
                padding in front, which is_token marks.
            n_new: how many tokens at most.
            is_token: False where a prompt is padded. A model that adds positions to its tokens
                counts them from the left, padding included, so its prompts must all have the same
                length.
            temperature: the logits are divided by it before softmax, and a token is drawn. 0 takes
                the likeliest, without a draw.
            top_k: draw only among the k likeliest tokens.
            top_p: draw only among the fewest tokens whose probabilities sum to p or more.
            end_id: the token that ends a text. After it, a text gets end_id again, and the iterator
                stops when all texts have ended.
            generator: draws the tokens; torch's global one unless given.

        Returns:
            An iterator over (batch,), the ids of one step. Nothing is computed before the iterator
            is asked for an item.

        Raises:
            ValueError: for numbers out of range, for top_k or top_p where nothing is drawn, and for
                padding where positions are added.

        Source:
            Fan et al. 2018 for top_k; Holtzman et al. 2020, §3.1, for top_p.
        """
        require_token_ids(token_ids)
        require_size("n_new", n_new)
        require_finite("temperature", temperature)
        if temperature < 0:
            raise ValueError(f"temperature must be at least 0, got {temperature}")
        if temperature == 0 and not (top_k is None and top_p is None):
            raise ValueError("temperature=0 draws nothing: give one above 0 beside top_k or top_p")
        if top_k is not None:
            require_size("top_k", top_k)
        if top_p is not None:
            require_finite("top_p", top_p)
            if not 0 < top_p <= 1:
                raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}")
        if end_id is not None:
            require_size("end_id", end_id, least=0)
        if is_token is not None:
            require_mask(is_token, tuple(token_ids.shape), "is_token")
            require_shape("is_token", is_token, tuple(token_ids.shape), "batch seq")
            if not is_token[:, -1].all():
                raise ValueError(
                    "is_token says that a prompt ends before the last column, and there its next "
                    "token is written; pad prompts in front"
                )
            if self.positions is not None and not is_token.all():
                raise ValueError(
                    "prompts of several lengths need padding, and this model would count its "
                    "positions; write them one by one, or those of one length together"
                )
        longest = getattr(self.positions, "max_length", None)
        if longest is not None and token_ids.shape[1] + n_new - 1 > longest:
            raise ValueError(
                f"a prompt of {token_ids.shape[1]} and n_new={n_new} tokens are more than the "
                f"model's positions, max_length={longest}"
            )
        draw = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "generator": generator}
        return self.write(token_ids, n_new, is_token, end_id, draw)

    def write(
        self,
        token_ids: Int[Tensor, "batch seq"],
        n_new: int,
        is_token: Bool[Tensor, "batch seq"] | None,
        end_id: int | None,
        draw: dict[str, Any],
    ) -> Iterator[Int[Tensor, " batch"]]:
        """`generate` without its argument checks."""
        batch, n_prompt = token_ids.shape
        cache = self.new_cache(batch, n_prompt + n_new)
        ended = torch.zeros(batch, dtype=torch.bool, device=token_ids.device)
        mask = None
        if is_token is not None and not is_token.all():
            mask = torch.ones(batch, n_prompt + n_new, dtype=torch.bool, device=token_ids.device)
            mask[:, :n_prompt] = is_token
        new = token_ids
        for n_keys in range(n_prompt, n_prompt + n_new):
            seen = None if mask is None else mask[:, None, None, :n_keys]
            with torch.no_grad():
                x, _ = self.read(new, seen, cache=cache, need_weights=False)
                token = next_token(self.to_logits(x[:, -1:])[:, 0], **draw)  # (batch,)
            if end_id is not None:
                token = token.masked_fill(ended, end_id)
                ended = ended | (token == end_id)
            yield token
            if end_id is not None and ended.all():
                return
            new = token[:, None]


def next_token(
    logits: Float[Tensor, "batch vocab"],
    *,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    generator: torch.Generator | None,
) -> Int[Tensor, " batch"]:
    """Take the likeliest token, or draw one, only among the likeliest if top_k or top_p say so."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    # In float32, and at most 0 before the division, so that a low temperature overflows nothing.
    logits, order = logits.float().sort(dim=-1, descending=True, stable=True)
    logits = (logits - logits[:, :1]) / temperature
    if top_k is not None:
        logits = logits[:, :top_k]
    p = logits.softmax(dim=-1)
    if top_p is not None and top_p < 1:  # a token is needed if those before it sum to less
        enough = p.cumsum(dim=-1) - p >= top_p
        enough[:, 0] = False
        p = p.masked_fill(enough, 0.0)
    place = torch.multinomial(p, 1, generator=generator)
    return order.gather(-1, place)[:, 0]
