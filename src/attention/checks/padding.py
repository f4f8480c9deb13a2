"""check_padding_mask (chapter 5): True for every key that is a token, (batch, 1, 1, key)."""

import math
from collections.abc import Callable

import torch

from attention.masks import padding_mask

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def tokens_masked(yours, right, inputs):
    tokens = right[0][:, 0, 0]
    mine = yours[0].expand_as(right[0])[:, 0, 0]
    return (
        f"Of {int(tokens.sum())} tokens yours leaves {int((mine & tokens).sum())} visible, and of "
        f"{int((~tokens).sum())} paddings {int((mine & ~tokens).sum())}."
    )


@BANK.mistake(
    "The mask is the wrong way round: it is True where padding is. Here, as in "
    "`F.scaled_dot_product_attention`, True means may attend; the masks of `nn.MultiheadAttention` "
    "mean the opposite.",
    "Compare with `!=` instead of `==`.",
    tokens_masked,
)
def inverted(token_ids, pad_id):
    return ~padding_mask(token_ids, pad_id)


@BANK.mistake(
    "The padding is compared with 0, whatever pad_id is.",
    "Which id means padding depends on the vocabulary: `token_ids != pad_id`.",
    tokens_masked,
)
def compared_with_zero(token_ids, pad_id):
    return padding_mask(token_ids, 0)


@BANK.mistake(
    "Ids are compared by size. An id is a name: those below pad_id are tokens like those above.",
    "`token_ids != pad_id`.",
    tokens_masked,
)
def compared_by_size(token_ids, pad_id):
    return (token_ids > pad_id)[:, None, None, :]


@BANK.mistake(
    "The mask has the shape of the ids, (batch, key). Against scores (batch, heads, query, key) "
    "its batch would come to lie under the queries.",
    "Add the axes of heads and queries: `mask[:, None, None, :]`.",
)
def no_axes(token_ids, pad_id):
    return token_ids != pad_id


@BANK.mistake(
    "The mask is (batch, 1, key). Against scores (batch, heads, query, key) its batch would come "
    "to lie under the heads.",
    "Two axes are missing, heads and queries: `mask[:, None, None, :]`.",
)
def one_axis_too_few(token_ids, pad_id):
    return (token_ids != pad_id)[:, None, :]


@BANK.mistake(
    "The new axes are in front: (1, 1, batch, key), so that the sentences lie on the axis of the "
    "queries.",
    "The batch stays axis 0: `mask[:, None, None, :]`.",
)
def axes_in_front(token_ids, pad_id):
    return (token_ids != pad_id)[None, None]


@BANK.mistake(
    "The mask lies on the queries, (batch, 1, query, 1): padding may not ask, and everybody may "
    "still attend to it. It is the other way round: a padding query does no harm, since nothing "
    "reads its output.",
    "The ids belong on the last axis, that of the keys: `mask[:, None, None, :]`.",
)
def on_the_queries(token_ids, pad_id):
    return (token_ids != pad_id)[:, None, :, None]


@BANK.mistake(
    "The mask forbids padding as a key and as a query. A padding query then has nothing to attend "
    "to, and its softmax is NaN unless somebody takes care of it.",
    "Leave the queries alone; nothing reads their outputs: `mask[:, None, None, :]`.",
)
def on_queries_and_keys(token_ids, pad_id):
    mask = token_ids != pad_id
    return mask[:, None, :, None] & mask[:, None, None, :]


@BANK.mistake(
    "The numbers are right, and the mask is written out for every query. In cross-attention there "
    "are not as many queries as keys, and it no longer fits.",
    "Size 1 on the axis of the queries means the same for all: `mask[:, None, None, :]`.",
)
def written_out_for_every_query(token_ids, pad_id):
    seq = token_ids.shape[1]
    return padding_mask(token_ids, pad_id).repeat(1, 1, seq, 1)


@BANK.mistake(
    "The mask holds ones and zeros as numbers. torch adds a mask of numbers to the scores, which "
    "forbids nothing.",
    "Leave the comparison as it is, a boolean tensor.",
)
def as_numbers(token_ids, pad_id):
    return padding_mask(token_ids, pad_id).float()


@BANK.mistake(
    "This is an additive mask, 0 for tokens and -inf for padding. The book's masks are boolean.",
    "Return the comparison itself; what adds numbers to the scores can make them from it.",
)
def additive(token_ids, pad_id):
    mask = padding_mask(token_ids, pad_id)
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


@BANK.mistake(
    "Every sentence gets the mask of the first.",
    "Sentences have different lengths: compare the whole batch, `token_ids != pad_id`.",
    tokens_masked,
)
def first_sentence_for_all(token_ids, pad_id):
    return padding_mask(token_ids, pad_id)[:1].repeat(len(token_ids), 1, 1, 1)


@BANK.mistake(
    "Tokens are counted, and so many places from the left are taken for tokens. Some batches have "
    "their padding on the left.",
    "Look at each id instead of counting: `token_ids != pad_id`.",
    tokens_masked,
)
def counted_from_the_left(token_ids, pad_id):
    lengths = (token_ids != pad_id).sum(dim=1)
    return (torch.arange(token_ids.shape[1]) < lengths[:, None])[:, None, None, :]


def cases(numbers: Numbers) -> list[Case]:
    def case(pad_id, *, left):
        batch, seq = numbers.sizes(2, least=3)
        ids = torch.randint(0, 7, (batch, seq), generator=numbers.numbers_from)
        ids = ids + (ids >= pad_id)  # any id but pad_id, on both sides of it
        tokens = numbers.padding(batch, seq)
        ids = ids.masked_fill(~(tokens.flip(1) if left else tokens), pad_id)
        return Case({"token_ids": ids, "pad_id": pad_id})

    return [case(3, left=False), case(5, left=True), case(0, left=False)]


TASK = Task("padding_mask", padding_mask, BANK, cases, {"mask": "batch 1 1 key"})


def check_padding_mask(function: Callable, *, seed: int = 0) -> Result:
    """Check padding_mask(token_ids, pad_id): ids (batch, key) -> boolean (batch, 1, 1, key)."""
    return examine(TASK, function, seed)
