"""A published model with one step of its attention done wrong, in all layers at once.

`StepwiseAttention` is what SmolLM2's layers attend with, cut into the steps that the book builds
one by one: split, turn, share keys, score, weigh, merge. Each mistake of `MISTAKES` replaces one of
them, so that its price is the price of that step.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_function, require_token_ids
from attention.heads import merge, split
from attention.masks import causal_mask
from attention.positions.rotary import Rotary
from attention.transformer.decoder_only import DecoderOnly

D_KEY, GROUP, BASE = 64, 3, 100_000.0  # of SmolLM2-135M: three query heads for each KV head
PER_QUERY, PER_KEY = -1, -2  # the axes of the scores
PIECE = 128  # tokens
Model = TypeVar("Model", bound=nn.Module)


class StepwiseAttention(nn.Module):
    """Causal attention with rotary positions and shared KV heads, one replaceable step at a time.

    It is called as `DotProduct` is, without a mask and without a cache.

    Args:
        after_split: changes the projected q, k and v (batch, heads, seq, d_key) after the split.
        turn: gives q and k their positions.
        one_query: replaces q before the scores, and may be left out.
        share: copies the KV heads, (batch, kv_heads, seq, d_key), for the query heads.
        divisor: of the scores.
        weigh: makes the weights from the scores (batch, heads, query, key) and from what each query
            sees.
        before_merge: changes each head's result (batch, heads, query, d_key).

    Example:
        >>> import torch
        >>> from attention.pretrained.mistakes import StepwiseAttention
        >>> q, k, v = torch.randn(1, 9, 5, 64), torch.randn(1, 3, 5, 64), torch.randn(1, 3, 5, 64)
        >>> heads, weights = StepwiseAttention()(q, k, v)
        >>> heads.shape, weights.shape
        (torch.Size([1, 9, 5, 64]), torch.Size([1, 9, 5, 5]))
    """

    def __init__(
        self,
        *,
        after_split: Callable[[Tensor], Tensor] = lambda x: x,
        turn: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
        one_query: Callable[[Tensor], Tensor] = lambda q: q,
        share: Callable[[Tensor], Tensor] = lambda x: x.repeat_interleave(GROUP, dim=1),
        divisor: float = D_KEY**0.5,
        weigh: Callable[[Tensor, Tensor], Tensor] | None = None,
        before_merge: Callable[[Tensor], Tensor] = lambda x: x,
    ) -> None:
        super().__init__()
        self.after_split, self.one_query, self.share = after_split, one_query, share
        self.turn = Rotary(D_KEY, BASE) if turn is None else turn
        self.divisor, self.before_merge = divisor, before_merge
        self.weigh = masked_softmax if weigh is None else weigh

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        v: Float[Tensor, "batch kv_heads key d_key"],
        mask: None = None,
        *,
        causal: bool = True,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch heads query d_key"], Float[Tensor, "batch heads query key"]]:
        """Attend in every head, step by step.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key).
            v: (batch, kv_heads, key, d_key).
            mask: none.
            causal: changes nothing: the future is hidden, unless `weigh` lets it in.
            need_weights: changes nothing: the weights are made in any case.
        """
        q, k, v = (self.after_split(x) for x in (q, k, v))
        q, k = self.turn(q, k)
        q, k, v = self.one_query(q), self.share(k), self.share(v)
        scores = q @ k.mT / self.divisor  # (batch, heads, query, key)
        sees = causal_mask(q.shape[2], k.shape[2]).to(q.device)
        weights = self.weigh(scores, sees)
        return self.before_merge(weights @ v), weights


def masked_softmax(
    scores: Float[Tensor, "batch heads query key"],
    sees: Bool[Tensor, "... query key"],
    axis: int = -1,
) -> Float[Tensor, "batch heads query key"]:
    return scores.masked_fill(~sees, -torch.inf).softmax(axis).nan_to_num(0.0)


def masked_late(
    scores: Float[Tensor, "batch heads query key"], sees: Bool[Tensor, "query key"]
) -> Float[Tensor, "batch heads query key"]:
    return scores.softmax(-1) * sees


def masked_late_and_renewed(
    scores: Float[Tensor, "batch heads query key"], sees: Bool[Tensor, "query key"]
) -> Float[Tensor, "batch heads query key"]:
    weights = masked_late(scores, sees)
    return weights / weights.sum(-1, keepdim=True)


def without_itself(
    scores: Float[Tensor, "batch heads query key"], sees: Bool[Tensor, "query key"]
) -> Float[Tensor, "batch heads query key"]:
    """Only the first token, which sees nothing else, still sees itself."""
    before = sees.tril(-1)
    before[0, 0] = True
    return masked_softmax(scores, before)


def split_by_view(x: Float[Tensor, "batch heads seq d_key"]) -> Float[Tensor, "batch heads seq _"]:
    """What `view` makes of the projected rows without the transpose after it."""
    return merge(x).reshape(x.shape)


def merge_by_view(x: Float[Tensor, "batch heads seq d_key"]) -> Float[Tensor, "batch heads seq _"]:
    """What the right merge turns into the result of `view` without the transpose before it."""
    batch, heads, seq, d_key = x.shape
    return split(x.reshape(batch, seq, heads * d_key), heads)


def mean_of_heads(
    x: Float[Tensor, "batch kv_heads seq d_key"],
) -> Float[Tensor, "batch heads seq d_key"]:
    return x.mean(1, keepdim=True).expand(-1, 3 * GROUP, -1, -1)


def mean_of_queries(
    q: Float[Tensor, "batch heads query d_key"],
) -> Float[Tensor, "batch heads query _"]:
    return q.mean(2, keepdim=True).expand_as(q)


def without_w_o(model: DecoderOnly) -> DecoderOnly:
    model = sharing_weights(model)
    for layer in model.layers:
        layer.self_attention.w_o = nn.Identity()  # nine heads of 64 are as wide as d_model
    return model


def with_attend(make: Callable[[], nn.Module], model: DecoderOnly) -> DecoderOnly:
    """Copy a model so that something else attends in every layer; the weights are shared.

    Args:
        make: makes what attends, once: all layers share it, in the dtype of the model.
        model: stays as it is.

    Example:
        >>> import torch
        >>> from attention import DecoderOnly, DotProduct
        >>> from attention.pretrained.mistakes import with_attend
        >>> model = DecoderOnly(50, 16, 4, 64, n_layers=2)
        >>> copy, ids = with_attend(DotProduct, model), torch.tensor([[3, 1, 4]])
        >>> torch.equal(copy(ids)[0], model(ids)[0]), copy.norm.weight is model.norm.weight
        (True, True)
    """
    require_function("make", make, "without arguments that makes what attends")
    attend = make().to(next(model.parameters()))
    model = sharing_weights(model)
    for layer in model.layers:
        layer.self_attention.attend = attend
    return model


def sharing_weights(model: Model) -> Model:
    """A copy whose modules can be replaced, and whose parameters are the model's own."""
    return copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})


def wrong(**step: Callable | float) -> Callable[[DecoderOnly], DecoderOnly]:
    return partial(with_attend, partial(StepwiseAttention, **step))


# By name: a function that makes a copy of the model with this step changed in each of its layers.
MISTAKES: dict[str, Callable[[DecoderOnly], DecoderOnly]] = {
    "none": wrong(),
    "no divisor": wrong(divisor=1.0),
    "divided by d_key": wrong(divisor=float(D_KEY)),
    "softmax over queries": wrong(weigh=partial(masked_softmax, axis=PER_KEY)),
    "mask after softmax": wrong(weigh=masked_late),
    "mask after, renewed": wrong(weigh=masked_late_and_renewed),
    "no mask": wrong(weigh=lambda scores, sees: scores.softmax(PER_QUERY)),
    "mask hides itself": wrong(weigh=without_itself),
    "split by view": wrong(after_split=split_by_view),
    "merge by view": wrong(before_merge=merge_by_view),
    "heads reversed": wrong(before_merge=lambda x: x.flip(1)),
    "no W_O": without_w_o,
    "one query for all": wrong(one_query=mean_of_queries),
    "all weights equal": wrong(weigh=lambda scores, sees: masked_softmax(0 * scores, sees)),
    "no positions": wrong(turn=lambda q, k: (q, k)),
    "base 10,000": wrong(turn=Rotary(D_KEY, 10_000.0)),
    "pairs from halves": wrong(turn=Rotary(D_KEY, BASE, halves=True)),
    "KV heads dealt out": wrong(share=lambda x: x.repeat(1, GROUP, 1, 1)),
    "one KV head": wrong(share=mean_of_heads),
}


class Price(NamedTuple):
    """What a model loses on a text.

    Attributes:
        loss: in nats for each token, the cross-entropy of the next one.
        right: the share of tokens whose successor has the highest probability.

    Example:
        >>> from attention.pretrained.mistakes import Price
        >>> Price(loss=2.0, right=0.5).right
        0.5
    """

    loss: float
    right: float


@torch.no_grad()
def price(model: DecoderOnly, token_ids: Int[Tensor, "1 seq"]) -> Price:
    """Measure how well a model predicts each token of a text from those before it.

    Args:
        model: the model, whole or with a mistake.
        token_ids: (1, seq).

    Example:
        >>> import torch
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.mistakes import price
        >>> model = DecoderOnly(2, 16, 4, 64, n_layers=1)
        >>> price(model, torch.tensor([[0, 1, 0, 1, 0]])).right in (0.0, 0.25, 0.5, 0.75, 1.0)
        True
    """
    require_token_ids(token_ids)
    x, _ = model.read(token_ids[:, :-1], need_weights=False)
    loss = right = 0.0
    # A piece at a time: each token has 49,152 logits.
    for rows, following in zip(x[0].split(PIECE), token_ids[0, 1:].split(PIECE), strict=True):
        logits = model.to_logits(rows[None])[0]
        loss += F.cross_entropy(logits, following, reduction="sum").item()
        right += (logits.argmax(-1) == following).sum().item()
    count = token_ids.shape[1] - 1
    return Price(loss / count, right / count)
