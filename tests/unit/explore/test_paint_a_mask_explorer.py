"""The painted mask beside loops over queries and keys, and the model asked one by one."""

import pytest
import torch

from attention.explore import paint_a_mask_explorer
from attention.explore.paint_a_mask import (
    COUNT,
    STARTS,
    book_model,
    count_right,
    starting_mask,
    two_verb_batch,
)
from attention.trained.who_and_whom import VOCABULARY, new_sentences
from tests.unit.explore.test_explore import frame, stored


@pytest.fixture(scope="module")
def explorer():
    return paint_a_mask_explorer()


def allowed(start, token_ids, query, key):
    is_word = token_ids[key] != 0
    return {
        "nothing hidden": True,
        "padding hidden": is_word,
        "padding and future hidden": is_word and key <= query,
        "only the next word": key == query + 1,
        "each word only itself": key == query,
        "everything hidden": False,
    }[start]


@pytest.mark.parametrize("start", STARTS)
def test_starting_masks_are_those_of_loops(start):
    batch = torch.tensor([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]])
    found = starting_mask(start, batch)
    assert found.dtype == torch.bool and found.shape == (2, 1, 5, 5)
    for sentence, ids in zip(found[:, 0].tolist(), batch.tolist(), strict=True):
        for query, row in enumerate(sentence):
            assert row == [allowed(start, ids, query, key) for key in range(5)]


def test_the_sentences_are_new_ones_with_two_verbs():
    batch = two_verb_batch()
    assert len(batch.verb) == 2 * COUNT
    assert torch.equal(batch.token_ids[::2], batch.token_ids[1::2])
    assert (batch.verb[::2] < batch.verb[1::2]).all()


@pytest.mark.parametrize("start", STARTS)
def test_stored_frames_hold_formula_and_count(explorer, start):
    held, model = frame(explorer, start_from=start), book_model()
    token_ids = VOCABULARY.encode_batch([held["tokens"]])
    mask = stored(explorer, held["mask"])
    expected = [
        [float(allowed(start, token_ids[0].tolist(), query, key)) for key in range(12)]
        for query in range(12)
    ]
    assert mask.tolist() == expected
    q, k = (
        projection(model.embed(token_ids).double()).view(12, 2, 4).transpose(0, 1)
        for projection in (model.attention.w_q, model.attention.w_k)
    )
    powers = mask * (q @ k.mT / 2).exp()
    weights = (powers / powers.sum(-1, keepdim=True)).nan_to_num(0)
    torch.testing.assert_close(
        stored(explorer, held["weights"]).double(), weights, rtol=0, atol=1e-5
    )
    right = 0
    two_verbs = [each for each in new_sentences(count=1000) if len(each.verbs) == 2][:COUNT]
    longest = max(len(each.tokens) for each in two_verbs)
    for tokens, verbs in two_verbs[:60]:
        ids = VOCABULARY.encode_batch([tokens + ["<pad>"] * (longest - len(tokens))])
        may = torch.tensor(
            [
                [bool(allowed(start, ids[0].tolist(), q, k)) for k in range(longest)]
                for q in range(longest)
            ]
        )
        output, _ = model.attention(model.embed(ids).double(), mask=may)
        for verb in verbs:
            logits = model.read(output, torch.tensor([verb.place]))
            words = VOCABULARY.decode([each.argmax().item() for each in logits])
            whom = "nobody" if verb.whom is None else tokens[verb.whom]
            right += words == [tokens[verb.who], whom]
    batch = two_verb_batch()
    few = type(batch)(*(part[:120] for part in batch))
    assert count_right(model, few, starting_mask(start, few.token_ids)) == right
    assert held["right"] == count_right(model, batch, starting_mask(start, batch.token_ids))
    assert held["of"] == 600
    assert stored(explorer, held["share"]).item() == pytest.approx(held["right"] / 600)


def test_a_row_that_sees_nothing_has_weights_0(explorer):
    held = frame(explorer, start_from="everything hidden")
    assert stored(explorer, held["weights"]).eq(0).all()
