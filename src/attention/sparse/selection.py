"""Attention over the best k keys of each query, chosen by what they hold: MoBA, and an indexer.

Most of a softmax's weight lies on a few keys, which differ from query to query. A cheap score finds
them, and attention is computed over them alone. The softmax is exact over the keys that are chosen:
the output equals dense attention under a mask that hides the others, and with all keys chosen it is
dense attention. No gradient flows through a choice.

A score can be cheap in two ways. MoBA scores whole blocks of neighbouring keys, each by the mean of
its keys, so n / block products for a query replace n, and nothing is learned for the score. The
lightning indexer of DeepSeek-V3.2 scores every key, which still takes n products for a query, but
of short vectors, in few heads, and once for all heads of the layer. It has weights of its own,
which learn to say where the layer's attention would look; `indexer_loss` compares its scores with
that attention.

Native Sparse Attention (Yuan et al. 2025) chooses blocks too, by the weights that a query gives to
learned summaries of them, and adds a window and the summaries themselves, each through a gate.

A choice saves most where all heads share their keys, because one gathered key then serves many
queries. DeepSeek-V3.2 chooses rows of latent attention for that reason. Here each head gathers its
own keys.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    can_be_read,
    require_dtype,
    require_dtype_of,
    require_heads,
    require_n_heads,
    require_padding_mask,
    require_size,
    require_vectors,
)
from attention.fused import attend_fused
from attention.heads import merge, split
from attention.masks import kept_keys
from attention.sparse.blocks import (
    how_many_at_once,
    require_self_attention,
)


def require_selected(selected: Tensor, query: Tensor, n_blocks: int) -> None:
    """Require numbers of blocks for each query, for each head or for all heads alike."""
    if not isinstance(selected, Tensor):
        raise TypeError(f"selected must be a tensor, got {type(selected).__name__}")
    if selected.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"selected must hold indices of blocks in int64, got {selected.dtype}")
    batch, heads, n_queries, _ = query.shape
    shape = tuple(selected.shape)
    fits = selected.ndim == 4 and shape[:3] in ((batch, heads, n_queries), (batch, 1, n_queries))
    if not fits or shape[3] == 0:
        raise ValueError(
            f"selected must have shape (batch, heads or 1, query, n_selected) = ({batch}, {heads} "
            f"or 1, {n_queries}, n_selected), with n_selected of at least 1, got {shape}"
        )
    if can_be_read(selected):
        least, most = (x.item() for x in selected.aminmax())
        if least < 0 or most >= n_blocks:
            raise ValueError(
                f"selected has block {least if least < 0 else most}, and the blocks go from 0 to "
                f"{n_blocks - 1}; with block=1 they are the positions of keys"
            )


def selected_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    selected: Int[Tensor, "batch #heads query n_selected"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    block: int = 1,
    causal: bool = False,
) -> Float[Tensor, "batch heads query d_value"]:
    """Let each query attend to the keys that are selected for it, and to no others.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        selected: (batch, heads, query, n_selected), which blocks of keys a query sees; with size 1
            for heads, all heads see the same blocks. A block that is listed twice counts twice.
        mask: which keys are not padding, (batch, 1, 1, key) as `padding_mask` makes it. A query
            that may attend to nothing gets output 0.
        block: how many neighbouring keys a number in `selected` stands for; number i stands for the
            keys from i · block on. With 1, the numbers are positions of keys.
        causal: hides selected keys that lie in the future, aligned as `causal_mask` is.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError: for numbers of blocks that do not exist, shapes that do not fit, and a mask that
            differs between queries.
        TypeError: for numbers of blocks that are not integers.

    Cost:
        With k = n_selected · block, O(query · k · (d_key + d_value)) time and O(query · k) memory.
        Each query gathers its own keys, so a key is read as often as it is selected. On a CPU the
        selection pays where k is a hundredth of the keys or less. With gradients, what is gathered
        is kept, which takes O(query · k · (d_key + d_value)) memory.
        torch.export takes one length at a time: how many queries are computed together follows
        from it.

    Source:
        DeepSeek-AI 2025 (DeepSeek-V3.2), §2.1, equation 2, for tokens; Lu et al. 2025 (MoBA), §2.2,
        for blocks.

    Example:
        >>> import torch
        >>> from attention import selected_attention
        >>> value = torch.tensor([[[[1.0], [2], [4], [8]]]])
        >>> last = torch.tensor([3, 3, 2, 2])[None, None, :, None]  # one key for each query
        >>> selected_attention(value, value, value, last).flatten()
        tensor([8., 8., 4., 4.])
    """
    require_heads(query, key, value)
    require_size("block", block)
    if mask is not None:
        require_padding_mask(mask, (*query.shape[:-1], key.shape[-2]), "selected attention")
    require_selected(selected, query, -(-key.shape[-2] // block))
    return attend_selected(query, key, value, selected, mask, block=block, causal=causal)


def attend_selected(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    selected: Int[Tensor, "batch #heads query n_selected"],
    mask: Bool[Tensor, "..."] | None,
    *,
    block: int,
    causal: bool,
) -> Float[Tensor, "batch heads query d_value"]:
    """`selected_attention` without its argument checks."""
    batch, heads, n_queries, _ = query.shape
    n_keys = key.shape[2]
    spare = -n_keys % block  # the last block may have fewer keys; no query sees what fills it up
    blocks = (n_keys + spare) // block
    # One row for each block of each head; rows are gathered whole.
    key, value = (
        F.pad(x, (0, 0, 0, spare)).reshape(batch * heads * blocks, block * x.shape[-1])
        for x in (key, value)
    )
    first_row = torch.arange(batch * heads, device=query.device).view(batch, heads, 1, 1) * blocks
    within = torch.arange(block, device=query.device)
    position = torch.arange(n_keys - n_queries, n_keys, device=query.device)[:, None]
    k = selected.shape[-1] * block
    if mask is not None:
        mask = mask.expand(*(1,) * (4 - mask.ndim), *mask.shape[:-1], n_keys)
        mask = F.pad(mask, (0, spare)).expand(batch, heads, 1, -1).flatten(1, 2)

    def heads_apart(x: Tensor) -> Tensor:  # (batch, heads, …) -> (batch · heads, …)
        return x.expand(batch, heads, *x.shape[2:]).flatten(0, 1)

    numbers = batch * heads * (key.shape[-1] + value.shape[-1]) * selected.shape[-1]  # of a query
    at_once = how_many_at_once(n_queries, numbers, query)
    outputs = []
    for queries, chosen, here in zip(
        query.split(at_once, dim=2),
        selected.split(at_once, dim=2),
        position.split(at_once),
        strict=True,
    ):
        few = queries.shape[2]
        listed = (chosen[..., None] * block + within).flatten(3)  # (batch, heads or 1, few, k)
        allowed = listed < n_keys
        if causal:
            allowed = allowed & (listed <= here)
        if mask is not None:
            seen = listed.expand(batch, heads, few, k).flatten(2)
            allowed = allowed & mask.gather(2, seen).view(batch, heads, few, k)
        rows = (first_row + chosen).flatten()
        gathered = (
            x.index_select(0, rows).view(batch * heads, few, k, x.shape[-1] // block)
            for x in (key, value)
        )
        # Each query attends alone: what the kernel takes for heads are the queries here.
        output = attend_fused(
            queries.flatten(0, 1)[:, :, None], *gathered, heads_apart(allowed)[:, :, None]
        )
        outputs.append(output.view(batch, heads, few, value.shape[-1] // block))
    return torch.cat(outputs, dim=2)


def moba_attention(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    block: int,
    n_blocks: int,
    causal: bool = False,
) -> Float[Tensor, "batch heads seq d_value"]:
    """Mixture of Block Attention: each query attends to its own block and to those of best mean.

    The score of a block is the product of the query with the mean of the block's keys. In every
    head each query takes n_blocks blocks, including its own, whatever the score of its own is.
    Where causal, the query takes no later blocks, and in its own block it sees only the keys that
    do not come after it.

    Args:
        query: (batch, heads, seq, d_key).
        key: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        mask: which keys are not padding, (batch, 1, 1, seq) as `padding_mask` makes it. Means are
            taken over these keys.
        block: how many neighbouring keys make a block.
        n_blocks: how many blocks a query sees, the paper's k; all of them, where there are fewer.
        causal: whether the keys after a query are hidden from it. In the paper they always are.

    Returns:
        The output, one vector for each query.

    Raises:
        ValueError: for different numbers of queries and keys, shapes that do not fit, and a mask
            that differs between queries.

    Cost:
        O(n · (n / block + n_blocks · block) · d_key) time, and memory as for `selected_attention`,
        plus n / block scores for each query. The authors' code sorts the queries by block instead
        of gathering keys for each query, and computes dense products.
        torch.export takes one length at a time, as for `selected_attention`.

    Source:
        Lu et al. 2025, §2.2.

    Example:
        >>> import torch
        >>> from attention import fused_attention, moba_attention
        >>> x = torch.randn(1, 2, 300, 8)
        >>> moba_attention(x, x, x, block=32, n_blocks=3, causal=True).shape
        torch.Size([1, 2, 300, 8])
        >>> all_blocks = moba_attention(x, x, x, block=32, n_blocks=10)
        >>> torch.allclose(all_blocks, fused_attention(x, x, x), atol=1e-5)
        True
    """
    require_self_attention(query, key, value, mask, "MoBA")
    require_size("block", block)
    require_size("n_blocks", n_blocks)
    selected = best_blocks(query, key, mask, block=block, n_blocks=n_blocks, causal=causal)
    return attend_selected(query, key, value, selected, mask, block=block, causal=causal)


@torch.no_grad()
def best_blocks(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    mask: Bool[Tensor, "..."] | None,
    *,
    block: int,
    n_blocks: int,
    causal: bool,
) -> Int[Tensor, "batch heads seq n_selected"]:
    """Each query's own block and those whose mean key has the largest product with it."""
    seq = key.shape[2]
    kept = kept_keys(key, mask).to(key.dtype)

    def sums(x: Tensor) -> Tensor:  # over each block; the last one may have fewer keys
        return F.pad(x, (0, 0, 0, -seq % block)).unflatten(2, (-1, block)).sum(3)

    count = sums(kept)  # (batch, heads, blocks, 1), of 1 where it is the same for all
    means = sums(torch.where(kept > 0, key, 0)) / count.clamp(min=1)
    scores = query @ means.mT  # (batch, heads, seq, blocks)
    scores = scores.masked_fill(count.mT == 0, -torch.inf)
    blocks = torch.arange(scores.shape[-1], device=key.device)
    own = torch.arange(seq, device=key.device)[:, None] // block
    if causal:
        scores = scores.masked_fill(blocks > own, -torch.inf)
    scores = scores.masked_fill(blocks == own, torch.inf)
    return scores.topk(min(n_blocks, len(blocks)), dim=-1, sorted=False).indices


def index_scores(
    query: Float[Tensor, "batch query index_heads d_index"],
    key: Float[Tensor, "batch key d_index"],
    weight: Float[Tensor, "batch query index_heads"],
) -> Float[Tensor, "batch query key"]:
    """Σ_j weight_j · ReLU(query_j · key): one score for a query and a key, from all index heads."""
    n_queries = query.shape[1]
    products = F.relu(query.flatten(1, 2) @ key.mT, inplace=True)  # (batch, query · heads, key)
    return (weight[:, :, None] @ products.unflatten(1, (n_queries, query.shape[2]))).squeeze(2)


def hide(
    scores: Float[Tensor, "batch query key"],
    mask: Bool[Tensor, "..."] | None,
    position: Int[Tensor, "query 1"] | None,
) -> Float[Tensor, "batch query key"]:
    """The scores, with the lowest number for padding and for keys after a position."""
    hidden = torch.zeros(1, 1, scores.shape[-1], dtype=torch.bool, device=scores.device)
    if mask is not None:
        hidden = ~mask.expand(*(1,) * (4 - mask.ndim), *mask.shape)[:, 0]
    if position is not None:
        hidden = hidden | (torch.arange(scores.shape[-1], device=scores.device) > position)
    return scores.masked_fill(hidden, torch.finfo(scores.dtype).min)


class LightningIndexer(nn.Module):
    """Scores every key for every query, cheaply: which keys would attention look at?

    Parameters by name: `w_q` (n_index_heads · d_index, d_model), `w_k` (d_index, d_model) and `w_w`
    (n_index_heads, d_model), without biases. All index heads share one key, and a query weighs its
    heads by numbers of its own. ReLU is fast, and the scores are not weights yet: only their order
    counts for the choice.

    DeepSeek-V3.2, as released, has 64 index heads of 128 numbers. It makes its queries from
    attention's compressed query, computes in 8 bits, normalises the keys, turns a part of queries
    and keys by position (rotary) and all of them by a Hadamard matrix, and scales the weights. None
    of these is done here.

    Args:
        d_model: the width of what comes in.
        n_index_heads: how many products a query makes with a key.
        d_index: how many numbers each product takes.

    Source:
        DeepSeek-AI 2025 (DeepSeek-V3.2), §2.1, equation 1.

    Example:
        >>> import torch
        >>> from attention import LightningIndexer
        >>> indexer = LightningIndexer(d_model=8, n_index_heads=2, d_index=4)
        >>> indexer(torch.randn(3, 50, 8), causal=True).shape
        torch.Size([3, 50, 50])
    """

    def __init__(self, d_model: int, n_index_heads: int, d_index: int) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("n_index_heads", n_index_heads)
        require_size("d_index", d_index)
        self.d_model, self.n_index_heads = d_model, n_index_heads
        self.w_q = nn.Linear(d_model, n_index_heads * d_index, bias=False)
        self.w_k = nn.Linear(d_model, d_index, bias=False)
        self.w_w = nn.Linear(d_model, n_index_heads, bias=False)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
    ) -> Float[Tensor, "batch seq seq"]:
        """Score all keys for all queries: what `indexer_loss` compares with weights.

        Args:
            x: (batch, seq, d_model).
            mask: which tokens are not padding, (batch, 1, 1, seq) as `padding_mask` makes it.
            causal: whether the tokens after a token are hidden from it.

        Returns:
            The scores, (batch, query, key); what is hidden has the lowest number of the dtype.

        Raises:
            ValueError, TypeError: for an x or a mask that does not fit.

        Cost:
            O(n² · n_index_heads · d_index) time and O(n² · n_index_heads) memory.
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        require_dtype_of(self, x=x)
        batch, seq, _ = x.shape
        if mask is not None:
            require_padding_mask(mask, (batch, 1, seq, seq), "the indexer")
        position = torch.arange(seq, device=x.device)[:, None] if causal else None
        return hide(index_scores(*self.project(x)), mask, position)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (batch, seq, index_heads, d_index), keys (batch, seq, d_index) and weights."""
        query = self.w_q(x).unflatten(-1, (self.n_index_heads, -1))
        return query, self.w_k(x), self.w_w(x)

    @torch.no_grad()
    def best_keys(
        self, x: Tensor, top_k: int, mask: Tensor | None, *, causal: bool
    ) -> Int[Tensor, "batch seq n_selected"]:
        """The keys with the best scores, for a few queries at a time: no n × n scores are held."""
        batch, seq, _ = x.shape
        query, key, weight = self.project(x)
        position = torch.arange(seq, device=x.device)[:, None]
        at_once = how_many_at_once(seq, batch * self.n_index_heads * seq, x)
        best = []
        for queries, weights, here in zip(
            query.split(at_once, dim=1),
            weight.split(at_once, dim=1),
            position.split(at_once),
            strict=True,
        ):
            scores = hide(index_scores(queries, key, weights), mask, here if causal else None)
            best.append(scores.topk(min(top_k, seq), dim=-1, sorted=False).indices)
        return torch.cat(best, dim=1)


def indexer_loss(
    scores: Float[Tensor, "batch query key"], weights: Float[Tensor, "batch heads query key"]
) -> Float[Tensor, ""]:
    """KL(p ‖ softmax(scores)), where p are the weights, summed over heads and made to sum to 1.

    It trains an indexer to point where attention looks. The loss is the mean over the queries,
    whereas the paper takes their sum; a query whose weights are all 0 counts as one that has
    nothing to learn. No gradient flows into the weights: attention does not learn to please the
    indexer.

    Args:
        scores: (batch, query, key), as `LightningIndexer` returns them.
        weights: (batch, heads, query, key), as `scaled_dot_product_attention` returns them, under
            the mask that the scores were computed with.

    Returns:
        The loss, one number; 0 where softmax(scores) is p.

    Raises:
        ValueError: for shapes that do not fit.
        TypeError: for numbers that are not floating-point numbers.

    Source:
        DeepSeek-AI 2025 (DeepSeek-V3.2), §2.1.1, equation 3, the dense warm-up.

    Example:
        >>> import torch
        >>> from attention import indexer_loss
        >>> weights = torch.tensor([[[[0.5, 0.5, 0.0]], [[0.5, 0.0, 0.5]]]])  # of two heads
        >>> p = torch.tensor([[[0.5, 0.25, 0.25]]])
        >>> indexer_loss(p.log(), weights), indexer_loss(0 * p, weights)
        (tensor(0.), tensor(0.0589))
    """
    require_vectors("scores", scores, "batch query key")
    require_vectors("weights", weights, "batch heads query key")
    require_dtype("scores", scores, "weights", weights.dtype)
    batch, _, n_queries, n_keys = weights.shape
    if scores.shape != (batch, n_queries, n_keys):
        raise ValueError(
            "scores must have shape (batch, query, key), those of weights (batch, heads, query, "
            f"key), got scores {tuple(scores.shape)} and weights {tuple(weights.shape)}"
        )
    total = weights.detach().sum(dim=1)
    p = total / total.sum(-1, keepdim=True).clamp(min=torch.finfo(total.dtype).tiny)
    difference = torch.xlogy(p, p) - p * scores.log_softmax(-1)
    return difference.sum(-1).mean()


class IndexedAttention(nn.Module):
    """Multi-head self-attention over the top_k keys that a lightning indexer scores best.

    Modules by name: `w_q`, `w_k`, `w_v` and `w_o` as in `MultiHeadAttention`, and `indexer`, a
    `LightningIndexer`. So the weights of a trained `MultiHeadAttention` can be loaded, with
    `load_state_dict(…, strict=False)`. A choice has no gradient, so the loss of a task trains the
    four projections and leaves the indexer as it is; `indexer_loss` trains the indexer.

    In DeepSeek-V3.2, whose attention is latent, all heads of a token read one row, and k is 2,048.

    Args:
        d_model, n_heads, bias: as for `MultiHeadAttention`.
        n_index_heads, d_index: as for `LightningIndexer`.
        top_k: how many keys a query sees, the same keys in all heads; all keys, where there are
            fewer.

    Raises:
        ValueError: for sizes that do not fit.

    Source:
        DeepSeek-AI 2025 (DeepSeek-V3.2), §2.1.

    Example:
        >>> import torch
        >>> from attention import IndexedAttention
        >>> module = IndexedAttention(8, 2, n_index_heads=2, d_index=4, top_k=16)
        >>> output, weights = module(torch.zeros(3, 50, 8), causal=True)
        >>> output.shape, weights
        (torch.Size([3, 50, 8]), None)
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_index_heads: int,
        d_index: int,
        top_k: int,
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
        require_size("top_k", top_k)
        self.d_model, self.n_heads, self.top_k = d_model, n_heads, top_k
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.indexer = LightningIndexer(d_model, n_index_heads, d_index)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch seq d_model"], None]:
        """Attend to the best-scoring keys, as `MultiHeadAttention.forward` does; weights are None.

        This method takes no key, because the indexer scores the tokens of one sequence.

        Args:
            x: (batch, seq, d_model).
            mask: which tokens are not padding, (batch, 1, 1, seq), as for `selected_attention`.
            causal: whether the tokens after a token are hidden from it.
            need_weights: changes nothing: no weights are made.

        Raises:
            ValueError, TypeError: as `selected_attention` does.

        Cost:
            O(n² · n_index_heads · d_index) time to score, and O(n · top_k · d_model) to attend. No
            n × n matrix is held.
            torch.export takes one length at a time: how many queries are scored together follows
            from it.
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        require_dtype_of(self, x=x)
        batch, seq, _ = x.shape
        if mask is not None:
            require_padding_mask(mask, (batch, self.n_heads, seq, seq), "indexed attention")
        selected = self.indexer.best_keys(x, self.top_k, mask, causal=causal)
        q, k, v = (split(w(x), self.n_heads) for w in (self.w_q, self.w_k, self.w_v))
        attended = attend_selected(q, k, v, selected[:, None], mask, block=1, causal=causal)
        return self.w_o(merge(attended)), None

    def extra_repr(self) -> str:
        return f"n_heads={self.n_heads}, top_k={self.top_k}"
