import re

import pytest
import torch

from attention import attend_in_blocks

X = torch.zeros(1, 2, 5, 4)
LISTED = torch.zeros(3, 2, dtype=torch.int64)  # blocks of two queries: 2 + 2 + 1
ALLOWED = torch.ones(3, 2, 2, dtype=torch.bool)

BAD = {
    "too few blocks": (
        (X, X, X, LISTED[:2], ALLOWED[:2]),
        "2 blocks of 2 queries hold 4 of 5 queries",
    ),
    "other blocks in each": (
        (X, X, X, LISTED[:2], ALLOWED),
        "with the same blocks and n_keys; got listed (2, 2) and allowed (3, 2, 2)",
    ),
    "a position outside": (
        (X, X, X, LISTED + 5, ALLOWED),
        "listed has position 5, and the positions of 5 tokens go from 0 to 4",
    ),
    "other keys than queries": (
        (X, X[:, :, :4], X[:, :, :4], LISTED, ALLOWED),
        "attention in blocks is self-attention",
    ),
}
KINDS = {
    "listed as a list": ((X, X, X, [[0]], ALLOWED), "listed must be a tensor, got list"),
    "listed as floats": ((X, X, X, LISTED.float(), ALLOWED), "listed must hold positions in int64"),
    "allowed as numbers": ((X, X, X, LISTED, ALLOWED.int()), "allowed must be boolean"),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("arguments", "words"), BAD.values(), ids=BAD)
def test_what_does_not_fit_is_refused(arguments, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        attend_in_blocks(*arguments)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("arguments", "words"), KINDS.values(), ids=KINDS)
def test_other_kinds_are_refused(arguments, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        attend_in_blocks(*arguments)


def test_rows_that_no_query_fills_are_ignored():
    value = torch.arange(5.0).view(1, 1, 5, 1)
    output = attend_in_blocks(value, value, value, torch.tensor([[4], [0], [1]]), ALLOWED[..., :1])
    assert output.flatten().tolist() == [4, 4, 0, 0, 1]
