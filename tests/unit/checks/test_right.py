"""Right answers, written in other ways than the book's, pass."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import attention
from attention import checks

pytestmark = pytest.mark.usefixtures("as_a_reader")


def projection_loops(x, w, b=None):
    out = torch.zeros(*x.shape[:2], w.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for n in range(w.shape[1]):
                out[i, j, n] = (x[i, j] * w[:, n]).sum() + (0 if b is None else b[n])
    return out


PROJECTIONS = {
    "matmul": lambda x, w, b=None: torch.matmul(x, w) + (0 if b is None else b),
    "linear": lambda x, w, b=None: F.linear(x, w.T, b),
    "einsum": lambda x, w, b=None: torch.einsum("bsm,mn->bsn", x, w) + (0 if b is None else b),
    "loops": projection_loops,
    "double": lambda x, w, b=None: F.linear(
        x.double(), w.T.double(), None if b is None else b.double()
    ).float(),
    "flattened": lambda x, w, b=None: (x.flatten(0, 1) @ w + (0 if b is None else b)).view(
        *x.shape[:2], -1
    ),
    "not contiguous": lambda x, w, b=None: (
        w.T @ x.mT + (0 if b is None else b[:, None])
    ).transpose(1, 2),
}


def split_loops(x, n_heads):
    batch, seq, d_model = x.shape
    d_key = d_model // n_heads
    heads = torch.empty(batch, n_heads, seq, d_key)
    for h in range(n_heads):
        for c in range(d_key):
            heads[:, h, :, c] = x[:, :, h * d_key + c]
    return heads


SPLITS = {
    "book": attention.split_heads,
    "unflatten": lambda x, n: x.unflatten(-1, (n, -1)).movedim(2, 1),
    "reshape": lambda x, n: x.reshape(*x.shape[:2], n, -1).permute(0, 2, 1, 3).contiguous(),
    "chunk": lambda x, n: torch.stack(x.chunk(n, dim=-1), dim=1),
    "einsum": lambda x, n: torch.einsum("bshd->bhsd", x.unflatten(2, (n, -1))),
    "transposed first": lambda x, n: x.mT.unflatten(1, (n, -1)).mT,
    "loops": split_loops,
    "double": lambda x, n: attention.split_heads(x.double(), n).float(),
}

MERGES = {
    "book": attention.merge_heads,
    "contiguous": lambda x: x.transpose(1, 2).contiguous().view(len(x), x.shape[2], -1),
    "cat": lambda x: torch.cat(x.unbind(1), dim=-1),
    "einsum": lambda x: torch.einsum("bhsd->bshd", x).flatten(2),
    "permute": lambda x: x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1),
    "list": lambda x: torch.cat([x[:, h] for h in range(x.shape[1])], 2),
    "not contiguous": lambda x: x.permute(1, 3, 0, 2).flatten(0, 1).permute(1, 2, 0),
}


def attention_loops(query, key, value, mask=None):
    output, weights = [], []
    mask = None if mask is None else mask.expand(*query.shape[:3], key.shape[2])
    for i in range(query.shape[0]):
        for h in range(query.shape[1]):
            scores = query[i, h] @ key[i, h].T / math.sqrt(query.shape[-1])
            if mask is not None:
                scores[~mask[i, h]] = -float("inf")
            weights.append(torch.softmax(scores, dim=-1))
            output.append(weights[-1] @ value[i, h])
    shape = query.shape[:2]
    return torch.stack(output).unflatten(0, shape), torch.stack(weights).unflatten(0, shape)


def attention_by_hand(query, key, value, mask=None):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(-1e9))
    scores = scores - scores.max(dim=-1, keepdim=True).values
    weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value), weights


def attention_additive(query, key, value, mask=None):
    scores = (query * query.shape[-1] ** -0.25) @ (key * key.shape[-1] ** -0.25).mT
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    return scores.softmax(-1) @ value


def attention_double(query, key, value, mask=None):
    inputs = (x.double() for x in (query, key, value))
    output, weights = attention.scaled_dot_product_attention(*inputs, mask)
    return output.float(), weights.float()


ATTENTIONS = {
    "book": attention.scaled_dot_product_attention,
    "torch": F.scaled_dot_product_attention,
    "loops": attention_loops,
    "by hand": attention_by_hand,
    "additive, output alone": attention_additive,
    "double": attention_double,
    "no weights": lambda q, k, v, mask=None: (attention_loops(q, k, v, mask)[0], None),
}

PADDINGS = {
    "book": attention.padding_mask,
    "unsqueeze": lambda ids, pad: (ids != pad).unsqueeze(1).unsqueeze(2),
    "inverse": lambda ids, pad: ~ids.eq(pad).view(len(ids), 1, 1, -1),
    "where": lambda ids, pad: torch.where(ids == pad, 0, 1).bool()[:, None, None],
    "list": lambda ids, pad: torch.tensor([[[[i != pad for i in row]]] for row in ids.tolist()]),
    "not contiguous": lambda ids, pad: (pad != ids.T).T[:, None, None],
}


def causal_loops(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    mask = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    for i in range(n_queries):
        for j in range(n_keys):
            mask[i, j] = j - (n_keys - n_queries) <= i
    return mask


CAUSALS = {
    "book": attention.causal_mask,
    "loops": causal_loops,
    "tril": lambda q, k=None: torch.ones(q, k or q).tril((k or q) - q).bool(),
    "triu": lambda q, k=None: ~torch.ones(q, k or q, dtype=torch.bool).triu((k or q) - q + 1),
    "comparison": lambda q, k=None: (
        torch.arange(k or q)[None] <= torch.arange(q)[:, None] + (k or q) - q
    ),
    "list": lambda q, k=None: torch.tensor(
        [[j <= i + (k or q) - q for j in range(k or q)] for i in range(q)]
    ),
}


class Mine(nn.Module):
    """A module in plain torch, as chapter 7 builds it."""

    def __init__(self, d_model, n_heads, bias=True):
        super().__init__()
        self.n_heads = n_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def projected(self, query, key, value):
        return self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))

    def forward(self, query, key, value, mask=None):
        q, k, v = self.projected(query, key, value)
        output, weights = attention_by_hand(q, k, v, mask)
        return self.w_o(output.transpose(1, 2).flatten(2)), weights


class OutputAlone(Mine):
    def forward(self, query, key, value, mask=None):
        heads = F.scaled_dot_product_attention(*self.projected(query, key, value), mask)
        return self.w_o(heads.transpose(1, 2).flatten(2))


class WithoutBias(Mine):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads, bias=False)


class WithDropout(Mine):
    def __init__(self, d_model, n_heads, dropout=0.1):
        super().__init__(d_model, n_heads)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.projected(query, key, value)
        weights = self.drop(attention_by_hand(q, k, v, mask)[1])
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights


class ProductsByHand(Mine):
    def forward(self, query, key, value, mask=None):
        def per_head(linear, x):
            weight = linear.weight.T.unflatten(1, (self.n_heads, -1))
            bias = linear.bias.unflatten(0, (self.n_heads, 1, -1))
            return torch.einsum("bsm,mhd->bhsd", x, weight) + bias

        q, k, v = per_head(self.w_q, query), per_head(self.w_k, key), per_head(self.w_v, value)
        output, weights = attention_loops(q, k, v, mask)
        w_o = self.w_o.weight.T.unflatten(0, (self.n_heads, -1))
        return torch.einsum("bhqd,hdm->bqm", output, w_o) + self.w_o.bias, weights


class HeadByHead(Mine):
    def forward(self, query, key, value, mask=None):
        d_key = query.shape[-1] // self.n_heads
        if mask is not None:
            mask = mask.expand(len(query), 1, query.shape[1], key.shape[1])[:, 0]
        heads = []
        for h in range(self.n_heads):
            columns = slice(h * d_key, (h + 1) * d_key)
            q, k, v = (
                F.linear(x, layer.weight[columns], layer.bias[columns])
                for layer, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
            )
            scores = q @ k.mT / math.sqrt(d_key)
            if mask is not None:
                scores = scores.masked_fill(~mask, -math.inf)
            heads.append(scores.softmax(-1) @ v)
        return self.w_o(torch.cat(heads, -1)), None


MODULES = {
    "book": attention.MultiHeadAttention,
    "plain": Mine,
    "output alone": OutputAlone,
    "without bias": WithoutBias,
    "with dropout": WithDropout,
    "products by hand": ProductsByHand,
    "head by head": HeadByHead,
}

VARIANTS = [
    pytest.param(check, variant, id=f"{check.__name__}-{name}")
    for check, variants in (
        (checks.check_projection, PROJECTIONS),
        (checks.check_split_heads, SPLITS),
        (checks.check_merge_heads, MERGES),
        (checks.check_scaled_dot_product_attention, ATTENTIONS),
        (checks.check_padding_mask, PADDINGS),
        (checks.check_causal_mask, CAUSALS),
        (checks.check_multi_head_attention, MODULES),
    )
    for name, variant in variants.items()
]


@pytest.mark.parametrize(("check", "variant"), VARIANTS)
def test_a_right_variant_passes(check, variant):
    for seed in (0, 1, 2):
        result = check(variant, seed=seed)
        assert result.passed, result
        assert result.mistakes == ()
        assert repr(result).startswith(f"{check.__name__}: passed.\n")


def test_float64_passes_with_a_note():
    result = checks.check_merge_heads(lambda x: attention.merge_heads(x).double())
    assert result.passed
    assert "float64 came back for float32" in repr(result)


def test_a_query_that_sees_nothing_is_noted():
    nan = checks.check_scaled_dot_product_attention(attention_loops)
    assert nan.passed
    assert "gets NaN from you" in repr(nan)
    zero = checks.check_scaled_dot_product_attention(attention.scaled_dot_product_attention)
    assert "NaN" not in repr(zero)
