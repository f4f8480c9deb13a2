"""The broken attention beside the chapters' own mistakes, and what several cost together."""

import ast
import itertools

import nbformat
import pytest
import torch

from attention import merge_heads, padding_mask, split_heads
from attention.explore import break_it_explorer
from attention.explore.break_it import COUNT, MISTAKES, attend_wrongly, count_right
from attention.trained.who_and_whom import VOCABULARY, encode, load, new_sentences
from tests.unit.explore.test_explore import frame, stored
from tools.refresh import chapters

COMBINATIONS = list(itertools.product((False, True), repeat=len(MISTAKES)))
NONE = dict.fromkeys(MISTAKES, "off")


@pytest.fixture(scope="module")
def explorer():
    return break_it_explorer()


@pytest.fixture(scope="module")
def right():
    return count_right()[0]


@pytest.fixture(scope="module")
def model():
    return load(8, 2).requires_grad_(False).double()


@pytest.fixture(scope="module")
def batch():
    return encode(new_sentences(count=COUNT))


def of_chapter(number, name):
    """A function as the chapter defines it."""
    path = next(path for path in chapters() if path.name.startswith(number))
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    functions = [
        node
        for cell in cells
        for node in ast.parse(cell.source).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    (function,) = functions
    space = {"torch": torch}
    exec(compile(ast.Module([function], type_ignores=[]), path.name, "exec"), space)
    return space[name]


def by_chapters(
    attention, x, mask, *, wrong_split, wrong_axis, no_scale, mask_too_late, no_transpose
):
    """The same attention made of the chapters' functions, the mistaken and the right ones."""
    split = of_chapter("03", "view_alone") if wrong_split else split_heads
    merge = of_chapter("03", "reshape_alone") if no_transpose else merge_heads
    softmax = of_chapter("04", "over_queries" if wrong_axis else "over_keys")
    q, k, v = (split(layer(x), 2) for layer in (attention.w_q, attention.w_k, attention.w_v))
    scores = q @ k.transpose(-2, -1) / (1 if no_scale else 2)
    if mask_too_late:
        after = of_chapter("05", "mask_after")
        weights = softmax(scores) * mask
        if not wrong_axis:
            assert torch.equal(weights, after(scores, mask))
    else:
        weights = softmax(scores.masked_fill(~mask, -1e9)) * mask
    return attention.w_o(merge(weights @ v)), weights


@pytest.mark.parametrize("on", COMBINATIONS)
def test_it_makes_the_mistakes_of_the_chapters(model, batch, on):
    mistakes = dict(zip(MISTAKES, on, strict=True))
    x, mask = model.embed(batch.token_ids), padding_mask(batch.token_ids, 0)
    found = attend_wrongly(model.attention, x, mask, **mistakes)
    expected = by_chapters(model.attention, x, mask, **mistakes)
    torch.testing.assert_close(tuple(found), expected, rtol=0, atol=1e-9)


def test_without_a_mistake_it_is_the_modules_attention(model, batch):
    x, mask = model.embed(batch.token_ids), padding_mask(batch.token_ids, 0)
    found = attend_wrongly(model.attention, x, mask)
    torch.testing.assert_close(tuple(found), model.attention(x, mask=mask), rtol=0, atol=1e-9)


def test_prices_are_those_of_a_loop_over_verbs(explorer, model, batch):
    """Word by word: an answer is right that is the word at its place."""
    x, mask = model.embed(batch.token_ids), padding_mask(batch.token_ids, 0)
    for on in COMBINATIONS:
        mistakes = dict(zip(MISTAKES, on, strict=True))
        output, _ = attend_wrongly(model.attention, x, mask, **mistakes)
        rows = output[torch.arange(len(batch.verb)), batch.verb]
        given = [VOCABULARY.decode(read(rows).argmax(-1).tolist()) for read in read_outs(model)]
        wanted = [answer for sentence in new_sentences(count=COUNT) for answer in sentence.answers]
        right = sum(pair == answer for *pair, answer in zip(*given, map(list, wanted), strict=True))
        held = frame(explorer, **labels(on))
        assert (held["right"], held["of"]) == (right, len(wanted))


def read_outs(model):
    return model.to_who, model.to_whom


def labels(on):
    return {name: "on" if each else "off" for name, each in zip(MISTAKES, on, strict=True)}


def test_every_frame_has_the_price_of_each_alone_and_of_all_together(explorer, right):
    as_it_is = right[COMBINATIONS[0]]
    alone = [as_it_is - right[on] for on in COMBINATIONS if sum(on) == 1][::-1]
    for on in COMBINATIONS:
        lost = stored(explorer, frame(explorer, **labels(on))["lost"]).flatten().tolist()
        assert lost == [*alone, as_it_is - right[on]]


def lost(right, *names):
    found = right[COMBINATIONS[0]] - right[tuple(name in names for name in MISTAKES)]
    assert set(names) <= set(MISTAKES)
    return found


def test_the_two_without_a_transpose_are_the_only_pair_that_undo_each_other(right):
    """What the chapter says of pairs."""
    for pair in itertools.combinations(MISTAKES, 2):
        alone = [lost(right, name) for name in pair]
        undone = min(alone) - lost(right, *pair)
        assert (undone > 100) == (pair == ("wrong_split", "no_transpose")), pair
        assert pair == ("wrong_split", "no_transpose") or undone <= 1, pair
    assert right[True, False, False, False, True] == 202
    assert right[True, False, False, False, False] == 8


def test_a_late_mask_costs_nothing_beside_the_wrong_axis(right):
    assert lost(right, "mask_too_late") > 100
    assert lost(right, "wrong_axis", "mask_too_late") == lost(right, "wrong_axis")


def test_no_scale_is_free_alone_and_not_beside_a_late_mask(right, model, batch):
    """There a pad takes most of a row, and without the divisor it takes more."""
    assert lost(right, "no_scale") == 0
    assert lost(right, "no_scale", "mask_too_late") > lost(right, "mask_too_late")
    x, mask = model.embed(batch.token_ids), padding_mask(batch.token_ids, 0)
    rows = torch.arange(len(batch.verb))
    left = [
        attend_wrongly(model.attention, x, mask, mask_too_late=True, no_scale=no_scale)
        .weights[rows, :, batch.verb]
        .sum(dim=-1)
        for no_scale in (False, True)
    ]
    mostly_pads = left[0] < 0.1
    assert mostly_pads.sum() > 100
    assert left[1][mostly_pads].median() < left[0][mostly_pads].median() / 5


def test_it_starts_without_a_mistake(explorer):
    assert not any(control.value for control in explorer.controls.values())
    held = frame(explorer, **NONE)
    assert held["answers"] == ["cat", "dog", "dog", "cat"]
    assert held["tokens"][-2:] == ["<pad>", "<pad>"]
    weights = stored(explorer, held["weights"])
    assert weights[..., -2:].abs().max() == 0
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2))
    # What the still picture's text says: who acts, and whom it is done to.
    assert weights[:, 0].argmax(-1).tolist() == [1, 7]
    assert weights[:, 1].argmax(-1).tolist() == [4, 11]
    assert weights.amax(-1).min() > 0.5
