"""What a guard says: the argument, what came, what was expected, the way out.

Every line of a guard has one row, and so has what two arguments must agree in. That each function
calls its guards, and for each argument, is tested in `test_one_wrong_argument`.
"""

import torch
from torch import nn

import attention
from attention import (
    MultiHeadAttention,
    PerHeadAttention,
    SinusoidalPositionalEncoding,
    TokenEmbedding,
    Vocabulary,
    linear_attention_step,
    lsh_attention,
    padding_mask,
    scaled_dot_product_attention,
    split_heads,
)
from tests.unit.refusals import refusals

X = torch.zeros(2, 5, 8)  # (batch, seq, d_model)
Q = torch.zeros(2, 4, 5, 3)  # (batch, heads, query, d_key)
K = torch.zeros(2, 4, 6, 3)
MHA = MultiHeadAttention(8, 4)
TRUE = torch.ones(5, 5, dtype=torch.bool)
IDS = torch.ones(2, 5, dtype=torch.int64)
TOKEN = torch.zeros(1, 1, 1, 3)
BUCKETS = torch.zeros(1, 1, 1, 5, dtype=torch.int64)


def from_torch(**options):
    return MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, **options))


test_sizes_and_numbers = refusals(
    [
        (
            lambda: MultiHeadAttention(8, 3),
            "n_heads=3 does not divide d_model=8; it can be 1, 2, 4 or 8",
        ),
        (lambda: PerHeadAttention(1, 2), "n_heads=2 does not divide d_model=1; it can be 1"),
        (
            lambda: split_heads(X, 16),
            "n_heads=16 does not divide d_model=8; it can be 1, 2, 4 or 8",
        ),
        (
            lambda: MultiHeadAttention(8, 2, dropout=10),
            "dropout is a probability between 0 and 1, got 10",
        ),
        (
            lambda: SinusoidalPositionalEncoding(8, dropout=-0.1),
            "dropout is a probability between 0 and 1, got -0.1",
        ),
        (lambda: TokenEmbedding(4, 2, pad_id=4), "pad_id=4 must be less than vocab_size=4"),
        (
            lambda: from_torch(kdim=4),
            "module has kdim=4 and vdim=8; here keys and values must be as wide as queries: "
            "kdim = vdim = embed_dim = 8",
        ),
        (
            lambda: from_torch(add_bias_kv=True),
            "module has add_bias_kv=True, an extra key that does not exist here",
        ),
        (
            lambda: from_torch(add_zero_attn=True),
            "module has add_zero_attn=True, an extra key that does not exist here",
        ),
        (
            lambda: attention.ReformerAttention(8, 2, n_buckets=(), n_rounds=1, chunk_length=4),
            "n_buckets must be an even number or two of them, got ()",
        ),
    ]
)

test_text = refusals(
    [
        (
            lambda: Vocabulary(["the cat"], unknown=False).encode("the bird"),
            "unknown token 'bird', and this vocabulary has no <unk>; build it with unknown=True",
        ),
        (
            lambda: Vocabulary(["a"]).decode([3]),
            "id 3 is not in this vocabulary; ids run from 0 to 2",
        ),
        (  # which would be the last token of a list
            lambda: Vocabulary(["a"]).decode([-1]),
            "id -1 is not in this vocabulary; ids run from 0 to 2",
        ),
        (
            lambda: Vocabulary(["a"]).encode_batch("a"),
            TypeError,
            "sentences must be a list of sentences, got one str; write [text]",
        ),
        (
            lambda: Vocabulary(["a"]).encode_batch([""]),
            "sentences hold no token at all; a batch needs at least one",
        ),
        (
            lambda: Vocabulary(["a b c"]).encode_batch(["a b c"], length=2),
            "a sentence has 3 tokens, more than length=2",
        ),
        (
            lambda: TokenEmbedding(4, 2)(torch.tensor([[1, 9]])),
            IndexError,
            "token_ids run from 1 to 9, but the table has vocab_size=4 rows",
        ),
        (
            lambda: padding_mask([[1, 2]], 0),
            TypeError,
            "token_ids must be a tensor, got list; make one with Vocabulary.encode_batch",
        ),
        (
            lambda: padding_mask(X, 0),
            TypeError,
            "token_ids must be int64, got torch.float32 of shape (2, 5, 8)",
        ),
        (
            lambda: padding_mask(IDS[0], 0),
            "token_ids must have shape (batch, seq), got (5,); add the batch axis with "
            "token_ids[None]",
        ),
        (
            lambda: TokenEmbedding(4, 2)(IDS[:, :0]),
            "token_ids is an empty sequence, shape (2, 0); it needs a token",
        ),
        (
            lambda: SinusoidalPositionalEncoding(8, max_length=4)(X),
            "x has 5 positions, more than max_length=4; shorten it, or build "
            "SinusoidalPositionalEncoding(8, max_length=5)",
        ),
    ]
)

test_vectors_and_states = refusals(
    [
        (lambda: MHA([[1.0]]), TypeError, "query must be a tensor, got list"),
        (
            lambda: MHA(X[0]),
            "query must have shape (batch, query, d_model), got 2 dimensions: (5, 8); "
            "add the batch axis with query[None]",
        ),
        (
            lambda: scaled_dot_product_attention(Q[0, 0, 0], K, K),
            "query must have shape (..., query, d_key), got 1 dimensions: (3,)",
        ),
        (
            lambda: MHA(X[..., :6]),
            "the last axis of query must be d_model=8, got 6 in shape (2, 5, 6)",
        ),
        (
            lambda: MHA(X.long()),
            TypeError,
            "query must hold floating-point numbers, got torch.int64 of shape (2, 5, 8); "
            "embed token ids with TokenEmbedding, convert other integers with query.float()",
        ),
        (
            lambda: MHA(X, X[:, :0]),
            "key is an empty sequence: axis key of (2, 0, 8) has size 0; "
            "attention needs at least one token",
        ),
        (
            lambda: MHA(X, X, X[:, :4]),
            "key and value must have the same length, one value for each key, "
            "got key (2, 5, 8) and value (2, 4, 8)",
        ),
        (
            lambda: MHA(X, X, X[:1]),
            "query and value must agree in every axis before the last two (the batch), "
            "got query (2, 5, 8) and value (1, 5, 8)",
        ),
        (
            lambda: linear_attention_step(*[Q[:1, :1]] * 3),
            "a step takes one token, got 5",
        ),
        (
            lambda: linear_attention_step(*[TOKEN.half()] * 3, torch.zeros(1, 1, 3, 4).half()),
            TypeError,
            "state must be what the step before returned, torch.float32, got torch.float16",
        ),
        (
            lambda: lsh_attention(Q[:1, :1], Q[:1, :1], BUCKETS - 2, chunk_length=4),
            "buckets are numbers from 0 on, got -2",
        ),
        (
            lambda: lsh_attention(Q[:1, :1], Q[:1, :1], BUCKETS + 2**31, chunk_length=4),
            "buckets are numbers below 2**31, got",
        ),
        (
            lambda: lsh_attention(Q[:1, :1], Q[:1, :1], BUCKETS[:, :, :0], chunk_length=4),
            "buckets has 0 rounds, and can have 1 to 255",
        ),
        (
            lambda: lsh_attention(
                Q[:1, :1], Q[:1, :1], BUCKETS.expand(1, 1, 256, 5), chunk_length=4
            ),
            "buckets has 256 rounds, and can have 1 to 255",
        ),
        (
            lambda: MultiHeadAttention(8, 4, n_kv_heads=2)(X, cache=(TOKEN, TOKEN)),
            TypeError,
            "cache must be a KeyValueCache, a RollingCache or None, got tuple; "
            "new_cache(batch, max_length) makes a KeyValueCache",
        ),
    ]
)

test_masks = refusals(
    [
        (
            lambda: MHA(X, mask=TRUE.float()),
            TypeError,
            "mask must be boolean, True = may attend, got torch.float32 of shape (5, 5); "
            "from ones and zeros write mask == 1, from an additive 0 and -inf write mask == 0",
        ),
        (
            lambda: MHA(X, mask=[True]),
            TypeError,
            "mask must be a boolean tensor or None, got list",
        ),
        (
            lambda: MHA(X, mask=TRUE[0]),
            "mask has 1 axes, (5,), and must have at least (query, key) to broadcast to "
            "(batch, heads, query, key) = (2, 4, 5, 5); write mask[None] for one that is the same "
            "for all queries",
        ),
        (
            lambda: MHA(X, mask=TRUE[:2]),
            "mask of shape (2, 5) does not broadcast to (batch, heads, query, key) = (2, 4, 5, 5); "
            "for a padding mask (batch, key) write mask[:, None, None, :]",
        ),
        (
            lambda: PerHeadAttention(8, 4)(X, mask=TRUE.expand(2, 5, 5)),
            "mask has 3 axes, (2, 5, 5), and must have 2 or 4 to broadcast to "
            "(batch, heads, query, key) = (2, 4, 5, 5); say which axis is missing: "
            "mask[:, None] for one mask per sentence, mask[None] for one per head",
        ),
        (
            lambda: scaled_dot_product_attention(*[Q[None]] * 3, torch.ones(4, 5, 5) == 1),
            "mask has 3 axes, (4, 5, 5), and must have 2 or 5 to broadcast to the scores "
            "= (1, 2, 4, 5, 5); say which axis is missing: mask[:, None]",
        ),
        (
            lambda: MHA(X, mask=TRUE[None, None, None]),
            "mask of shape (1, 1, 1, 5, 5) does not broadcast to",
        ),
        (
            lambda: scaled_dot_product_attention(*[Q[0, 0]] * 3, torch.ones(1, 5, 5) == 1),
            "mask of shape (1, 5, 5) does not broadcast to the scores = (5, 5)",
        ),
    ]
)
