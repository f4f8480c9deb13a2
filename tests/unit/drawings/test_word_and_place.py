"""The rows drawn are those of the table, of the sines and cosines, and of the model's X."""

import math

import pytest
import torch

from attention import running_example
from attention.drawings import word_and_place
from attention.trained import who_and_whom
from tests.unit.drawings.reading import assert_drawn

AT = [0, 3]  # both are "the"


@pytest.fixture(scope="module")
def rows():
    example, model = running_example(), who_and_whom.load().requires_grad_(False)
    words = model.embedding.table.weight[example.token_ids[0]] * math.sqrt(8)
    angles = [[pos / 10000 ** (2 * i / 8) for i in range(4)] for pos in range(6)]
    pe = torch.tensor([[f(a) for a in row for f in (math.sin, math.cos)] for row in angles])
    return words, pe, example.x[0], example.tokens[0]


def expected(words, pe, x):
    kinds = {"word": words, "place": pe, "X": x}
    return {f"{kind} {pos}": rows[[pos]] for pos in AT for kind, rows in kinds.items()}


def test_word_plus_place_is_the_models_x(rows):
    words, pe, x, tokens = rows
    assert_drawn(word_and_place(words, pe, tokens, AT), expected(words, pe, x))


def test_a_word_without_its_factor_is_seen(rows):
    words, pe, x, tokens = rows
    with pytest.raises(AssertionError):
        assert_drawn(word_and_place(words / math.sqrt(8), pe, tokens, AT), expected(words, pe, x))


def test_it_says_where_the_same_word_gets_another_row(rows):
    words, pe, _, tokens = rows
    told, alone = "the same word, another place: another row", "the same word, another place"
    for at, is_said in ((AT, True), ([0, 1], False)):
        drawing = word_and_place(words, pe, tokens, at)
        assert (told in drawing.wide) == (f">{alone}<" in drawing.narrow) == is_said
