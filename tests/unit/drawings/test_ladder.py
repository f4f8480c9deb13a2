"""The ladder of a head whose keys are one number: its rungs, and the two that a query can reach."""

import torch

from attention.drawings import ladder
from attention.trained import who_and_whom
from attention.trained.who_and_whom import VOCABULARY
from tests.unit.drawings.reading import assert_drawn

TOKENS = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "chased", "the", "other", "cat"]


@torch.no_grad()
def keys_of_head_0():
    """One number for each word, in the stored model with eight heads."""
    model = who_and_whom.load(8, 8)
    x = model.embed(VOCABULARY.encode_batch([TOKENS]))
    return model.attention.w_k(x)[0, :, 0]


def test_the_rungs_stand_at_the_keys():
    keys = keys_of_head_0()
    assert_drawn(ladder(keys, TOKENS, {"saw": 1, "chased": 7}), {"keys": keys}, atol=0.001)


def test_it_says_which_words_a_query_can_put_first():
    """Whatever the query, the best score is at one of the two, and not at what "chased" needs."""
    keys = keys_of_head_0()
    told = ladder(keys, TOKENS, {"saw": 1, "chased": 7}).alt
    high, low = keys.argmax().item(), keys.argmin().item()
    assert f"{TOKENS[high]} {high}: any query above 0 finds this" in told
    assert f"{TOKENS[low]} {low}: any below 0 finds this" in told
    queries = torch.linspace(-5, 5, 100)  # without 0
    assert set((queries[:, None] * keys).argmax(dim=-1).tolist()) == {high, low}
    assert "dog 7: “chased” needs this" in told and 7 not in (high, low)
