"""Argument checks of Part I: the argument, what came, what was expected, the way out.

Every line of a guard has one row. That each function calls its guards, and for each argument, is
tested in `test_one_wrong_argument`; the rows here and beside the functions say what else they say:
how two arguments must agree, and the way out.
"""

import re

import pytest
import torch
from torch import nn

from attention import (
    MultiHeadAttention,
    PerHeadAttention,
    SinusoidalPositionalEncoding,
    TokenEmbedding,
    Vocabulary,
    fused_attention,
    padding_mask,
    running_example,
    scaled_dot_product_attention,
    split_heads,
    tokenize,
)

pytestmark = pytest.mark.usefixtures("as_a_reader")

X = torch.zeros(2, 5, 8)  # (batch, seq, d_model)
Q = torch.zeros(2, 4, 5, 3)  # (batch, heads, query, d_key)
K = torch.zeros(2, 4, 6, 3)
MHA, PER_HEAD = MultiHeadAttention(8, 4), PerHeadAttention(8, 4)
TRUE = torch.ones(5, 5, dtype=torch.bool)
IDS = torch.ones(2, 5, dtype=torch.int64)
UNKNOWN = "unknown token 'bird', and this vocabulary has no <unk>; build it with unknown=True"

SIZES = {
    "heads do not divide": (
        lambda: MultiHeadAttention(8, 3),
        ValueError,
        "n_heads=3 does not divide d_model=8; it can be 1, 2, 4 or 8",
    ),
    "heads do not divide 1": (
        lambda: PerHeadAttention(1, 2),
        ValueError,
        "n_heads=2 does not divide d_model=1; it can be 1",
    ),
    "more heads than columns": (
        lambda: PerHeadAttention(12, 24),
        ValueError,
        "n_heads=24 does not divide d_model=12; it can be 1, 2, 3, 4, 6 or 12",
    ),
    "split into heads that do not divide": (
        lambda: split_heads(X, 5),
        ValueError,
        "n_heads=5 does not divide d_model=8; it can be 1, 2, 4 or 8",
    ),
    "no head": (lambda: MultiHeadAttention(8, 0), ValueError, "n_heads must be at least 1, got 0"),
    "no vocabulary": (
        lambda: TokenEmbedding(0, 4),
        ValueError,
        "vocab_size must be at least 1, got 0",
    ),
    "a bool for a size": (
        lambda: MultiHeadAttention(8, True),
        TypeError,
        "n_heads must be an int, got True of type bool",
    ),
    "a float for a size": (
        lambda: MultiHeadAttention(8.0, 2),
        TypeError,
        "d_model must be an int, got 8.0 of type float",
    ),
    "dropout above 1": (
        lambda: MultiHeadAttention(8, 2, dropout=10),
        ValueError,
        "dropout is a probability between 0 and 1, got 10",
    ),
    "dropout below 0": (
        lambda: SinusoidalPositionalEncoding(8, dropout=-0.1),
        ValueError,
        "dropout is a probability between 0 and 1, got -0.1",
    ),
    "dropout that is no number": (
        lambda: scaled_dot_product_attention(Q, K, K, dropout=float("nan")),
        ValueError,
        "dropout is a probability between 0 and 1, got nan",
    ),
    "dropout as a bool": (
        lambda: MultiHeadAttention(8, 2, dropout=True),
        TypeError,
        "dropout must be a float, got True of type bool",
    ),
    "padding outside the vocabulary": (
        lambda: TokenEmbedding(4, 2, pad_id=4),
        ValueError,
        "pad_id=4 must be less than vocab_size=4",
    ),
}

TEXT = {
    "tokenize a list": (lambda: tokenize(["a"]), TypeError, "text must be a str, got list"),
    "unknown token": (
        lambda: Vocabulary(["the cat"], unknown=False).encode("the bird"),
        ValueError,
        UNKNOWN,
    ),
    "id outside the vocabulary": (
        lambda: Vocabulary(["a"]).decode([3]),
        ValueError,
        "id 3 is not in this vocabulary; ids run from 0 to 2",
    ),
    "negative id": (
        lambda: Vocabulary(["a"]).decode([-1]),
        ValueError,
        "id -1 is not in this vocabulary; ids run from 0 to 2",
    ),
    "a batch that is one text": (
        lambda: Vocabulary(["a"]).encode_batch("a"),
        TypeError,
        "sentences must be a list of sentences, got one str; write [text]",
    ),
    "a batch without tokens": (
        lambda: Vocabulary(["a"]).encode_batch([""]),
        ValueError,
        "sentences hold no token at all; a batch needs at least one",
    ),
    "an example without sentences": (
        lambda: running_example(sentences=[]),
        ValueError,
        "sentences hold no token at all; a batch needs at least one",
    ),
    "a sentence too long for the batch": (
        lambda: Vocabulary(["a b c"]).encode_batch(["a b c"], length=2),
        ValueError,
        "a sentence has 3 tokens, more than length=2",
    ),
    "ids of another vocabulary": (
        lambda: TokenEmbedding(4, 2)(torch.tensor([[1, 9]])),
        IndexError,
        "token_ids run from 1 to 9, but the table has vocab_size=4 rows",
    ),
    "ids that are floats": (
        lambda: TokenEmbedding(4, 2)(torch.zeros(1, 2)),
        TypeError,
        "token_ids must be int64, got torch.float32 of shape (1, 2)",
    ),
    "ids that are a list": (
        lambda: padding_mask([[1, 2]], 0),
        TypeError,
        "token_ids must be a tensor, got list; make one with Vocabulary.encode_batch",
    ),
    "ids of one sentence": (
        lambda: padding_mask(IDS[0], 0),
        ValueError,
        "token_ids must have shape (batch, seq), got (5,); add the batch axis with token_ids[None]",
    ),
    "no ids": (
        lambda: TokenEmbedding(4, 2)(IDS[:, :0]),
        ValueError,
        "token_ids is an empty sequence, shape (2, 0); it needs a token",
    ),
    "embedded tokens in place of ids": (
        lambda: padding_mask(X, 0),
        TypeError,
        "token_ids must be int64, got torch.float32 of shape (2, 5, 8)",
    ),
    "longer than the positional table": (
        lambda: SinusoidalPositionalEncoding(8, max_length=4)(X),
        ValueError,
        "x has 5 positions, more than max_length=4; shorten it, or build "
        "SinusoidalPositionalEncoding(8, max_length=5)",
    ),
}

VECTORS = {
    "split two dimensions": (
        lambda: split_heads(X[0], 2),
        ValueError,
        "x must have shape (batch, seq, d_model), got 2 dimensions: (5, 8); "
        "add the batch axis with x[None]",
    ),
    "split four dimensions": (
        lambda: split_heads(Q, 2),
        ValueError,
        "x must have shape (batch, seq, d_model), got 4 dimensions: (2, 4, 5, 3)",
    ),
    "split integers": (
        lambda: split_heads(X.long(), 2),
        TypeError,
        "x must hold floating-point numbers, got torch.int64 of shape (2, 5, 8)",
    ),
    "split an empty sequence": (
        lambda: split_heads(X[:, :0], 2),
        ValueError,
        "x is an empty sequence: axis seq of (2, 0, 8) has size 0",
    ),
    "one axis": (
        lambda: scaled_dot_product_attention(Q[0, 0, 0], K, K),
        ValueError,
        "query must have shape (..., query, d_key), got 1 dimensions: (3,)",
    ),
    "other d_key": (
        lambda: scaled_dot_product_attention(Q, K[..., :2], K),
        ValueError,
        "the last axis of key must be d_key=3, got 2 in shape (2, 4, 6, 2)",
    ),
    "other length": (
        lambda: scaled_dot_product_attention(Q, K, Q),
        ValueError,
        "key and value must have the same length, one value for each key, "
        "got key (2, 4, 6, 3) and value (2, 4, 5, 3)",
    ),
    "other heads": (
        lambda: scaled_dot_product_attention(Q, K[:, :1], K[:, :1]),
        ValueError,
        "query and key must agree in every axis before the last two (the batch), "
        "got query (2, 4, 5, 3) and key (2, 1, 6, 3)",
    ),
    "a mask beside integer queries": (
        lambda: scaled_dot_product_attention(Q.int(), K, K),
        TypeError,
        "query must hold floating-point numbers, got torch.int32 of shape (2, 4, 5, 3)",
    ),
    "a mask for other axes": (
        lambda: scaled_dot_product_attention(Q, K, K, TRUE),
        ValueError,
        "mask of shape (5, 5) does not broadcast to (batch, heads, query, key) = (2, 4, 5, 6)",
    ),
    "a mask with an axis too many": (
        lambda: scaled_dot_product_attention(Q[0, 0], K[0, 0], K[0, 0], torch.ones(1, 5, 6) == 1),
        ValueError,
        "mask of shape (1, 5, 6) does not broadcast to the scores = (5, 6)",
    ),
    "a mask with an axis too few": (
        lambda: scaled_dot_product_attention(Q[None], K[None], K[None], torch.ones(4, 5, 6) == 1),
        ValueError,
        "mask has 3 axes, (4, 5, 6), and must have 2 or 5 to broadcast to the scores "
        "= (1, 2, 4, 5, 6); say which axis is missing: mask[:, None]",
    ),
}


# Each row is one line of the guard of a module's inputs.
FORWARD = {
    "a list": (lambda: MHA([[1.0]]), TypeError, "query must be a tensor, got list"),
    "two dimensions": (
        lambda: MHA(X[0]),
        ValueError,
        "query must have shape (batch, query, d_model), got 2 dimensions: (5, 8); "
        "add the batch axis with query[None]",
    ),
    "wrong width": (
        lambda: MHA(X[..., :6]),
        ValueError,
        "the last axis of query must be d_model=8, got 6 in shape (2, 5, 6)",
    ),
    "token ids": (
        lambda: MHA(X.long()),
        TypeError,
        "query must hold floating-point numbers, got torch.int64 of shape (2, 5, 8); "
        "embed token ids with TokenEmbedding, convert other integers with query.float()",
    ),
    "empty queries": (
        lambda: MHA(X[:, :0]),
        ValueError,
        "query is an empty sequence: axis query of (2, 0, 8) has size 0",
    ),
    "empty keys": (
        lambda: MHA(X, X[:, :0]),
        ValueError,
        "key is an empty sequence: axis key of (2, 0, 8) has size 0; "
        "attention needs at least one token",
    ),
    "lengths": (
        lambda: MHA(X, X, X[:, :4]),
        ValueError,
        "key and value must have the same length, one value for each key, "
        "got key (2, 5, 8) and value (2, 4, 8)",
    ),
    "batches": (
        lambda: MHA(X, X[:1]),
        ValueError,
        "query and key must agree in every axis before the last two (the batch), "
        "got query (2, 5, 8) and key (1, 5, 8)",
    ),
    "batch of value": (
        lambda: MHA(X, X, X[:1]),
        ValueError,
        "query and value must agree in every axis before the last two (the batch), "
        "got query (2, 5, 8) and value (1, 5, 8)",
    ),
    "float mask": (
        lambda: MHA(X, mask=TRUE.float()),
        TypeError,
        "mask must be boolean, True = may attend, got torch.float32 of shape (5, 5); "
        "from ones and zeros write mask == 1, from an additive 0 and -inf write mask == 0",
    ),
    "mask that is a list": (
        lambda: MHA(X, mask=[True]),
        TypeError,
        "mask must be a boolean tensor or None, got list",
    ),
    "mask of another length": (
        lambda: MHA(X, mask=TRUE[:, :4]),
        ValueError,
        "mask of shape (5, 4) does not broadcast to (batch, heads, query, key) = (2, 4, 5, 5)",
    ),
    "padding mask of two axes": (
        lambda: MHA(X, mask=TRUE[:2]),
        ValueError,
        "mask of shape (2, 5) does not broadcast to (batch, heads, query, key) = (2, 4, 5, 5); "
        "for a padding mask (batch, key) write mask[:, None, None, :]",
    ),
    "mask of three axes": (
        lambda: MHA(X, mask=TRUE.expand(2, 5, 5)),
        ValueError,
        "mask has 3 axes, (2, 5, 5), and must have 2 or 4 to broadcast to "
        "(batch, heads, query, key) = (2, 4, 5, 5); say which axis is missing: "
        "mask[:, None] for one mask per sentence, mask[None] for one per head",
    ),
    "mask of five axes": (
        lambda: MHA(X, mask=TRUE[None, None, None]),
        ValueError,
        "mask of shape (1, 1, 1, 5, 5) does not broadcast to",
    ),
}

# The other functions with that guard, or with its parts: how two arguments must agree.
WIRING = {
    "PerHeadAttention's mask": (
        lambda: PER_HEAD(X, mask=TRUE.expand(2, 5, 5)),
        ValueError,
        "mask has 3 axes, (2, 5, 5), and must have 2 or 4",
    ),
    "fused_attention's vectors": (
        lambda: fused_attention(Q, K, K[:, :, :2]),
        ValueError,
        "key and value must have the same length, one value for each key, "
        "got key (2, 4, 6, 3) and value (2, 4, 2, 3)",
    ),
    "fused_attention's mask": (
        lambda: fused_attention(Q, K, K, TRUE),
        ValueError,
        "mask of shape (5, 5) does not broadcast to (batch, heads, query, key) = (2, 4, 5, 6)",
    ),
}

FROM_TORCH = {
    "not torch's module": (
        lambda: MultiHeadAttention.from_torch(MHA),
        TypeError,
        "module must be a torch.nn.MultiheadAttention, got MultiHeadAttention",
    ),
    "keys of another width": (
        lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, kdim=4)),
        ValueError,
        "module has kdim=4 and vdim=8; here keys and values must be as wide as queries: "
        "kdim = vdim = embed_dim = 8",
    ),
    "an extra key with a bias": (
        lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, add_bias_kv=True)),
        ValueError,
        "module has add_bias_kv=True, an extra key that does not exist here",
    ),
    "an extra key of zeros": (
        lambda: MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, add_zero_attn=True)),
        ValueError,
        "module has add_zero_attn=True, an extra key that does not exist here",
    ),
}

ALL = SIZES | TEXT | VECTORS | FORWARD | WIRING | FROM_TORCH


@pytest.mark.parametrize("name", ALL)
def test_bad_input_is_refused_with_a_reason(name):
    call, error, message = ALL[name]
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert caught.type is error
