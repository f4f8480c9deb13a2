"""Multi-head latent attention: keys and values of all heads from one narrow row per token.

Grouped-query attention makes the KV cache smaller by having fewer KV heads. Here every head has
keys and values of its own, and a token's keys and values in all heads are made from one latent row
of d_latent numbers, which the cache keeps instead of them.

Each head's key is a matrix times the latent row, and so is its value. A score is then the query
times the keys' matrix times the row. If we multiply that matrix into the query instead, the query
meets the latent rows themselves. The weights then sum latent rows, and the values' matrix is
multiplied in once, after the sum. This is the absorbed form. It gives the same numbers and makes
neither keys nor values: it is multi-query attention with one key of d_latent numbers for each
token, which is its value too.

Rotary positions would come between a query and the keys' matrix, with a turn that depends on the
distance, so that the matrix could not be multiplied into the query. So the positions get a key of
their own, the decoupled rotary key: d_rotary numbers for each token, which all heads share, and
which are turned once and kept beside the latent row. Each head has a rotary query for it, and a
score is the sum of both dot products, divided by √(d_key + d_rotary).

The absorbed form saves memory and the reading of memory, not multiplications: in each head, a query
takes 2 · d_latent + d_rotary of them with a kept row, and 2 · d_key + d_rotary with a key and a
value. It is the cheaper form where a cache would have to be expanded first, as in decoding, but not
where keys and values are made once for many queries, as in prefill
(`attention.cost.dense.latent_step`).

Two things are left out: YaRN, which changes the angles and the scale of published models that were
extended to long contexts, and values wider or narrower than d_key.
"""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import (
    require_float_dtype,
    require_mask,
    require_n_heads,
    require_sequences,
    require_size,
    require_vectors,
)
from attention.dot_product import attend_in_groups
from attention.heads import merge, split
from attention.positions.rotary import Rotary
from attention.precision import autocast_dtype


class LatentCache:
    """The latent rows of one layer, in memory that is allocated once for max_length tokens.

    Args:
        batch: how many sequences are decoded side by side.
        max_length: how many tokens fit.
        d_latent: the width of a latent row; heads do not count.
        d_rotary: the width of the rotary key that follows the latent row in the same memory, so
            that both together are a key and the first d_latent numbers are a value, without a copy.
        dtype, device: those of the rows; torch's defaults unless given.

    Attributes:
        length: how many tokens are held.
        nbytes: the bytes allocated, batch · max_length · (d_latent + d_rotary) · (bytes per
            number).

    Source:
        Liu et al. 2024, §2.1.2, §2.1.3 and table 1.

    Example:
        >>> import torch
        >>> from attention import KeyValueCache, LatentCache
        >>> cache = LatentCache(batch=1, max_length=16, d_latent=6, d_rotary=2)
        >>> cache.append(torch.randn(1, 3, 8)).shape, cache.length
        (torch.Size([1, 3, 8]), 3)
        >>> KeyValueCache(batch=1, n_kv_heads=4, max_length=16, d_key=16).nbytes // cache.nbytes
        16
    """

    def __init__(
        self,
        batch: int,
        max_length: int,
        d_latent: int,
        *,
        d_rotary: int = 0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        for name, size in (("batch", batch), ("max_length", max_length), ("d_latent", d_latent)):
            require_size(name, size)
        require_size("d_rotary", d_rotary, least=0)
        require_float_dtype(dtype)
        self.max_length, self.d_latent, self.length = max_length, d_latent, 0
        self.rows = torch.zeros(batch, max_length, d_latent + d_rotary, dtype=dtype, device=device)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    @property
    def latents(self) -> Float[Tensor, "batch max_length d_latent"]:
        """The latent rows, without the rotary keys; a view."""
        return self.rows[..., : self.d_latent]

    @property
    def rotary_keys(self) -> Float[Tensor, "batch max_length d_rotary"]:
        """The rotary keys, turned by their positions; a view."""
        return self.rows[..., self.d_latent :]

    def append(self, row: Float[Tensor, "batch new d_row"]) -> Float[Tensor, "batch length d_row"]:
        """Write the rows of new tokens after the others, and return all of them.

        Args:
            row: (batch, new, d_latent + d_rotary), the latent row and after it the rotary key.

        Returns:
            All rows, as a view of the cache; only the new ones are copied.

        Raises:
            ValueError: for tokens that do not fit, for another batch or width, and for rows that
                need gradients, since the cache overwrites what those would need.
            TypeError: for another dtype.

        Cost:
            O(new · (d_latent + d_rotary)).
        """
        require_vectors("row", row, "batch new d_row")
        batch, _, d_row = self.rows.shape
        expected = (batch, row.shape[1], d_row)
        if row.shape != expected:
            raise ValueError(
                f"row has shape (batch, new, d_latent + d_rotary) = {tuple(row.shape)}, and this "
                f"cache takes {expected}; a cache belongs to one layer and one batch, so make "
                "another for these"
            )
        if row.dtype != self.rows.dtype:
            raise TypeError(
                f"row is {row.dtype}, and this cache holds {self.rows.dtype}; "
                f"make it with dtype={row.dtype}"
            )
        if row.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                "row asks for gradients, which a cache cannot give; decode inside "
                "torch.no_grad(), and train without a cache, on the whole sequence"
            )
        start, stop = self.length, self.length + row.shape[1]
        if stop > self.max_length:
            raise ValueError(
                f"the cache holds {start} of max_length={self.max_length} tokens, and "
                f"{stop - start} more do not fit; make it with max_length={stop} or more"
            )
        self.rows[:, start:stop] = row
        self.length = stop
        return self.rows[:, :stop]


class LatentAttention(nn.Module):
    """Self-attention with keys and values from latent rows, absorbed once a cache holds some.

    Parameters by name, each a layer with `.weight` and, where bias is listed, `.bias`:

    - `w_q` (n_heads · d_key, d_model), bias; and with d_rotary the rotary queries, `w_q_rotary`
      (n_heads · d_rotary, d_model), bias. With d_query_latent both take the latent query instead,
      which `w_q_down` (d_query_latent, d_model) makes.
    - `w_down` (d_latent, d_model), which makes the latent rows; `w_k` and `w_v` (n_heads · d_key,
      d_latent), which make keys and values of them; and with d_rotary `w_k_rotary` (d_rotary,
      d_model), which makes the rotary key of all heads.
    - `w_o` (d_model, n_heads · d_key), bias.
    - with norm, `norm` (d_latent) and, with d_query_latent, `q_norm` (d_query_latent): the gains of
      RMSNorm.

    A bias on w_down, w_k or w_v would have no effect, except through the norm. In the keys, or in
    the rows that they are made of, it moves all scores of a query by the same amount, which softmax
    takes out. In the values it comes out of a weighted sum as it went in, which is what the bias of
    w_o does.

    Without norm and rotary key the layer is a `MultiHeadAttention` whose matrices for keys and
    values are w_k · w_down and w_v · w_down, of rank d_latent at most. Order must then come from
    the rows that the layer is given, as with `LearnedPositions` or `SinusoidalPositionalEncoding`.

    Args:
        d_model, n_heads: as in `MultiHeadAttention`.
        d_latent: the width of a token's latent row. If d_latent + d_rotary is below
            2 · n_kv_heads · d_key, the cache is smaller than that of grouped-query attention.
        d_rotary: the width of the rotary key and of each head's rotary query; it must be even, and
            with 0 there are none.
        d_query_latent: the width of a latent row that the queries are made of; none unless given.
            It saves parameters and memory in training, but nothing in the cache.
        d_key: the width of a head's key, without its rotary part, and of its value; d_model /
            n_heads unless given.
        norm: whether latent rows pass through RMSNorm, with eps 1e-6, before keys, values and
            queries are made of them.
        base: that of `Rotary`, whose pairs are neighbours here, as in DeepSeek's code.
        bias: whether w_q, w_q_rotary and w_o add a bias.

    Raises:
        ValueError: d_rotary is odd, or n_heads does not divide d_model and d_key is not given.

    Source:
        Liu et al. 2024, §2.1.2 and §2.1.3, equations 9 to 19, and appendix C, equations 37 to 47;
        §3.1.2 for the norms and the sizes of DeepSeek-V2.

    Example:
        >>> import torch
        >>> from attention import LatentAttention
        >>> attention = LatentAttention(d_model=16, n_heads=4, d_latent=6, d_rotary=2)
        >>> x, cache = torch.randn(1, 3, 16), attention.new_cache(batch=1, max_length=3)
        >>> with torch.no_grad():
        ...     tokens = [attention(x[:, i : i + 1], cache=cache)[0] for i in range(3)]
        >>> torch.allclose(torch.cat(tokens, 1), attention(x, causal=True)[0], atol=1e-6)
        True
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_latent: int,
        *,
        d_rotary: int = 0,
        d_query_latent: int | None = None,
        d_key: int | None = None,
        norm: bool = False,
        base: float = 10000.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if d_key is None:
            require_n_heads(d_model, n_heads)
            d_key = d_model // n_heads
        for name, size in (("d_model", d_model), ("n_heads", n_heads), ("d_key", d_key)):
            require_size(name, size)
        require_size("d_latent", d_latent)
        require_size("d_rotary", d_rotary, least=0)
        if d_rotary % 2:
            raise ValueError(f"d_rotary={d_rotary} is odd, and components turn in pairs")
        self.d_model, self.n_heads, self.d_latent = d_model, n_heads, d_latent
        self.d_key, self.d_rotary, self.d_query_latent = d_key, d_rotary, d_query_latent

        d_query = d_model  # the width of what queries are made of
        self.w_q_down, self.q_norm = nn.Identity(), nn.Identity()
        if d_query_latent is not None:
            require_size("d_query_latent", d_query_latent)
            d_query = d_query_latent
            self.w_q_down = nn.Linear(d_model, d_query, bias=False)
            if norm:
                self.q_norm = nn.RMSNorm(d_query, eps=1e-6)
        self.w_q = nn.Linear(d_query, n_heads * d_key, bias=bias)
        self.w_down = nn.Linear(d_model, d_latent, bias=False)
        self.norm = nn.RMSNorm(d_latent, eps=1e-6) if norm else nn.Identity()
        self.w_k = nn.Linear(d_latent, n_heads * d_key, bias=False)
        self.w_v = nn.Linear(d_latent, n_heads * d_key, bias=False)
        if d_rotary:
            self.w_q_rotary = nn.Linear(d_query, n_heads * d_rotary, bias=bias)
            self.w_k_rotary = nn.Linear(d_model, d_rotary, bias=False)
            self.rotary = Rotary(d_rotary, base)
        self.w_o = nn.Linear(n_heads * d_key, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: LatentCache | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query _"] | None]:
        """Attend from every token to every token.

        Args:
            query: (batch, query, d_model); keys and values are made of the same tokens.
            mask: as in `MultiHeadAttention.forward`.
            causal: as in `MultiHeadAttention.forward`.
            cache: takes the latent rows and rotary keys of these tokens, which then attend to all
                that it holds. The axis `key` of the weights and of the mask counts all tokens held.
                Pass causal=True with several tokens; a single one has no future to hide. Tokens
                that enter an empty cache take the plain form, as without a cache, and later ones
                take the absorbed form.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, query, d_model) and weights (batch, heads, query, key).

        Raises:
            ValueError, TypeError: as `MultiHeadAttention.forward` and `LatentCache.append` do. A
                call that is refused leaves the cache as it was.

        Cost:
            The plain form takes O(n · d_model · (d_model + d_latent) + n² · n_heads · (d_key +
            d_rotary)). In the absorbed form, a token takes O(d_model · (d_model + d_latent) + n ·
            n_heads · (d_latent + d_rotary)) and reads n · (d_latent + d_rotary) numbers. Many
            tokens at once after a long cache, more than about d_latent · d_key / (d_latent -
            d_key), would take fewer multiplications if keys and values were made again from what
            the cache holds. This layer takes the absorbed form all the same.
        """
        if not isinstance(cache, LatentCache | None):
            raise TypeError(
                f"cache must be a LatentCache or None, got {type(cache).__name__}; "
                "new_cache(batch, max_length) makes one"
            )
        require_sequences(self, query, query, query, None)
        kept = 0 if cache is None else cache.length
        if mask is not None:
            n_keys = kept + query.shape[1]
            require_mask(mask, (query.shape[0], self.n_heads, query.shape[1], n_keys))

        latent_query = self.w_q_down(query)  # without d_query_latent, the tokens
        # Even where autocast computes the norm in float32, all rows have one dtype.
        latent_query = self.q_norm(latent_query).to(latent_query.dtype)
        q = split(self.w_q(latent_query), self.n_heads)  # (batch, heads, query, d_key)
        latent = self.w_down(query)  # (batch, query, d_latent)
        row = latent = self.norm(latent).to(latent.dtype)
        if self.d_rotary:
            q_rotary = split(self.w_q_rotary(latent_query), self.n_heads)
            q_rotary = self.rotary.turn_from(q_rotary, kept)  # (batch, heads, query, d_rotary)
            k_rotary = self.rotary.turn_from(self.w_k_rotary(query)[:, None], kept)
            row = torch.cat((latent, k_rotary[:, 0]), dim=-1)
        if cache is not None:
            row = cache.append(row)  # (batch, key, d_latent + d_rotary)

        if not kept:  # plain: each head's keys and values
            k = split(self.w_k(latent), self.n_heads)  # (batch, heads, key, d_key)
            v = split(self.w_v(latent), self.n_heads)
            if self.d_rotary:
                k = torch.cat((k, k_rotary.expand(-1, self.n_heads, -1, -1)), dim=-1)
        else:  # absorbed: the rows are keys and values of all heads
            k = row[:, None]  # (batch, 1, key, d_latent + d_rotary)
            v = k[..., : self.d_latent]
            # Scores are divided by the root of the absorbed query's width.
            scale = math.sqrt((self.d_latent + self.d_rotary) / (self.d_key + self.d_rotary))
            q = (q * scale) @ self.per_head(self.w_k)  # (batch, heads, query, d_latent)
            if self.d_rotary:
                q_rotary = q_rotary * scale
        if self.d_rotary:
            q = torch.cat((q, q_rotary), dim=-1)
        attended, weights = attend_in_groups(
            q, k, v, mask, dropout=0.0, causal=causal, need_weights=need_weights
        )
        if kept:  # (batch, heads, query, d_latent) -> (batch, heads, query, d_key)
            attended = attended @ self.per_head(self.w_v).mT
        return self.w_o(merge(attended)), weights

    def per_head(self, w: nn.Linear) -> Float[Tensor, "heads d_key d_latent"]:
        """The part of w_k or w_v that belongs to each head."""
        return w.weight.unflatten(0, (self.n_heads, self.d_key))

    def new_cache(self, batch: int, max_length: int) -> LatentCache:
        """Make an empty cache for this layer, with its widths, dtype and device.

        Under autocast it has the dtype that autocast gives to the latent rows.
        """
        w = self.w_down.weight
        options = {"dtype": autocast_dtype(w) or w.dtype, "device": w.device}
        return LatentCache(batch, max_length, self.d_latent, d_rotary=self.d_rotary, **options)

    @classmethod
    def from_deepseek(
        cls, weights: Mapping[str, Tensor], n_heads: int, *, base: float = 10000.0
    ) -> "LatentAttention":
        """Copy the attention of a layer of DeepSeek-V2 or V3, from the tensors of its checkpoint.

        There the rows of rotary queries follow the other rows of each head, and those of the rotary
        key share a matrix with those of the latent row. All sizes but n_heads are read from the
        shapes.

        Args:
            weights: the tensors by their published names, `q_a_proj.weight` and `q_b_proj.weight`
                with `q_a_layernorm.weight`, or `q_proj.weight` where queries are not compressed;
                `kv_a_proj_with_mqa.weight`, `kv_a_layernorm.weight`, `kv_b_proj.weight` and
                `o_proj.weight`.
            n_heads: how many heads; the tensors do not say.
            base: of the rotary angles.

        Raises:
            TypeError: for anything but tensors by their names.
            ValueError: for a tensor that is missing or not expected, and for shapes that do not fit
                each other.

        Source:
            models/deepseek_v2 of huggingface/transformers, for the names and the order of the rows.
        """
        require_size("n_heads", n_heads)
        compressed = isinstance(weights, Mapping) and "q_proj.weight" not in weights
        of_query = ("q_a_proj", "q_a_layernorm", "q_b_proj") if compressed else ("q_proj",)
        names = {
            f"{name}.weight"
            for name in (*of_query, "kv_a_proj_with_mqa", "kv_a_layernorm", "kv_b_proj", "o_proj")
        }
        if not isinstance(weights, Mapping) or not all(map(torch.is_tensor, weights.values())):
            raise TypeError(
                f"weights must be tensors by their names, got {type(weights).__name__}; "
                "state_dict() of a published layer gives them"
            )
        if weights.keys() != names:
            raise ValueError(
                f"weights must be {', '.join(sorted(names))}, "
                f"got {', '.join(map(str, weights)) or 'none'}"
            )
        w = {name.removesuffix(".weight"): x for name, x in weights.items()}
        d_latent, d_model = w["kv_a_layernorm"].numel(), len(w["o_proj"])
        d_rotary = len(w["kv_a_proj_with_mqa"]) - d_latent
        d_key = w["o_proj"].shape[-1] // n_heads
        d_query = w["q_a_layernorm"].numel() if compressed else d_model
        shapes = {
            of_query[-1]: (n_heads * (d_key + d_rotary), d_query),
            "kv_a_proj_with_mqa": (d_latent + d_rotary, d_model),
            "kv_a_layernorm": (d_latent,),
            "kv_b_proj": (n_heads * 2 * d_key, d_latent),
            "o_proj": (d_model, n_heads * d_key),
        }
        if compressed:
            shapes |= {"q_a_proj": (d_query, d_model), "q_a_layernorm": (d_query,)}
        for name, shape in shapes.items():
            if w[name].shape != shape:
                raise ValueError(
                    f"{name}.weight must have shape {shape} beside the others and with "
                    f"n_heads={n_heads}, got {tuple(w[name].shape)}"
                )
        ours = cls(
            d_model,
            n_heads,
            d_latent,
            d_rotary=d_rotary,
            d_query_latent=d_query if compressed else None,
            d_key=d_key,
            norm=True,
            base=base,
            bias=False,
        )
        ours.to(w["o_proj"])
        # A head has d_key rows of queries, then d_rotary; of keys and of values it has d_key each.
        q, q_rotary = w[of_query[-1]].unflatten(0, (n_heads, -1)).split((d_key, d_rotary), dim=1)
        k, v = w["kv_b_proj"].unflatten(0, (n_heads, -1)).chunk(2, dim=1)
        down, k_rotary = w["kv_a_proj_with_mqa"].split((d_latent, d_rotary))
        state = {
            "w_q.weight": q.flatten(0, 1),
            "w_q_rotary.weight": q_rotary.flatten(0, 1),
            "w_down.weight": down,
            "w_k_rotary.weight": k_rotary,
            "norm.weight": w["kv_a_layernorm"],
            "w_k.weight": k.flatten(0, 1),
            "w_v.weight": v.flatten(0, 1),
            "w_o.weight": w["o_proj"],
        }
        if compressed:
            state |= {"w_q_down.weight": w["q_a_proj"], "q_norm.weight": w["q_a_layernorm"]}
        ours.load_state_dict(state)
        return ours

    def extra_repr(self) -> str:
        return (
            f"d_model={self.d_model}, n_heads={self.n_heads}, d_latent={self.d_latent}, "
            f"d_rotary={self.d_rotary}, d_query_latent={self.d_query_latent}, d_key={self.d_key}"
        )
