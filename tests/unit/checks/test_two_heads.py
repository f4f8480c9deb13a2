"""check_two_heads, which runs the learner's matrices: what is named, and from what it is named."""

import pytest
import torch

from attention.checks import check_two_heads, two_heads
from attention.checks.inputs import Numbers
from attention.trained.induction.data import draw_sequences

pytestmark = pytest.mark.usefixtures("as_a_reader")

TOKEN, PLACE, COPY, ANSWER = (slice(32 * i, 32 * i + 32) for i in range(4))
EYE, BACK = torch.eye(32), torch.diag(torch.ones(31), -1)


def square(**changes):
    """Two heads as a learner writes them, square, entry by entry; `q0=(rows, columns, what)`."""
    entries = {
        "q0": (PLACE, PLACE, 200 * BACK),
        "k0": (PLACE, PLACE, EYE),
        "v0": (TOKEN, TOKEN, EYE),
        "o0": (TOKEN, COPY, EYE),
        "q1": (TOKEN, TOKEN, 200 * EYE),
        "k1": (COPY, TOKEN, EYE),
        "v1": (TOKEN, TOKEN, EYE),
        "o1": (TOKEN, ANSWER, EYE),
    } | changes

    def function():
        made = []
        for rows, columns, what in entries.values():
            w = torch.zeros(128, 128)
            w[rows, columns] = what
            made.append(w)
        return made[:4], made[4:]

    return function


LEARNERS = {
    "roll wraps round, forwards": ({"q0": (PLACE, PLACE, 90 * EYE.roll(1, 1))}, "looks_ahead"),
    "shift in the keys": (
        {"q0": (PLACE, PLACE, 90 * EYE), "k0": (PLACE, PLACE, BACK)},
        "looks_ahead",
    ),
    "no shift": ({"q0": (PLACE, PLACE, 90 * EYE)}, "looks_at_itself"),
    "shifted twice": ({"k0": (PLACE, PLACE, BACK.T)}, "looks_two_back"),
    "ones, and no more": ({"q0": (PLACE, PLACE, BACK)}, "layer_0_too_quiet"),
    "minus": ({"q0": (PLACE, PLACE, -70 * BACK)}, "looks_away"),
    "query and key in other columns": ({"k0": (PLACE, TOKEN, EYE)}, "layer_0_all_alike"),
    "the rows of the tokens": (
        {"q0": (TOKEN, TOKEN, 90 * BACK), "k0": (TOKEN, TOKEN, EYE)},
        "shifts_tokens",
    ),
    "w_o of layer 0 turned": ({"o0": (COPY, TOKEN, EYE)}, "layer_0_writes_nothing"),
    "into the token": ({"o0": (TOKEN, TOKEN, EYE)}, "overwrites_the_token"),
    "values from the place": ({"v0": (PLACE, TOKEN, EYE)}, "hands_on_the_place"),
    "keys from the token": ({"k1": (TOKEN, TOKEN, EYE)}, "finds_the_same_token"),
    "the two of layer 1 swapped": (
        {"q1": (COPY, TOKEN, 90 * EYE), "k1": (TOKEN, TOKEN, EYE)},
        "query_and_key_swapped",
    ),
    "reads where nothing is": ({"k1": (ANSWER, TOKEN, EYE)}, "layer_1_all_alike"),
    "layer 1 with ones": ({"q1": (TOKEN, TOKEN, EYE)}, "layer_1_too_quiet"),
    "w_o of layer 1 turned": ({"o1": (ANSWER, TOKEN, EYE)}, "layer_1_writes_nothing"),
    "into the copy": ({"o1": (TOKEN, COPY, EYE)}, "layer_1_writes_elsewhere"),
    "values from the copy": ({"v1": (COPY, TOKEN, EYE)}, "answers_with_the_copy"),
    # What comes first on the way is named.
    "two at once": (
        {"k0": (PLACE, PLACE, BACK), "q0": (PLACE, PLACE, 50 * BACK), "v1": (COPY, TOKEN, EYE)},
        "looks_at_itself",
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learners_version_of_it_is_named(name):
    changes, mistake = LEARNERS[name]
    for seed in (0, 1):
        result = check_two_heads(square(**changes), seed=seed)
        assert not result.passed
        assert result.mistakes == (mistake,), result
        assert " answers are right. A wrong one: token " in result.paragraphs[-1]


def test_it_passes_without_a_mistake():
    result = check_two_heads(square())
    assert result.passed
    right, all_of_them = map(int, result.paragraphs[0].split(" answers")[0].split(" of "))
    assert right == all_of_them > 100


def test_a_mistake_without_a_name_is_told_in_numbers():
    result = check_two_heads(square(q0=(PLACE, PLACE, 90 * BACK @ BACK @ BACK)))
    assert not result.passed
    assert result.mistakes == ()
    [numbers] = result.paragraphs
    assert "The head of layer 0 gives 0.00 from place" in numbers


def test_every_habit_of_the_bank_is_known_and_its_own():
    [case] = two_heads.cases(Numbers(0))
    habits = [bytes(mistake(*case.copies()).tolist()) for mistake in two_heads.BANK]
    assert b"" not in habits
    assert len(set(habits)) == len(habits)


def test_the_marks_are_the_chapters():
    sequences = draw_sequences(300, torch.Generator().manual_seed(4))
    kept = (sequences.token_ids[:, 1:] != sequences.token_ids[:, :1]).all(dim=1)
    marked = two_heads.marks(sequences.token_ids[kept])
    assert torch.equal(marked, sequences.determined[kept])


def test_the_layers_are_attention_added_to_its_rows():
    """Beside torch's own causal attention, with the right heads."""
    [case] = two_heads.cases(Numbers(0))
    x = two_heads.rows_of(case.inputs["token_ids"])
    heads = [[w.double() for w in head] for head in two_heads.two_heads()]
    for w_q, w_k, w_v, w_o in heads:
        q, k, v = x @ w_q, x @ w_k, x @ w_v
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + attended @ w_o
    done = two_heads.layers(tuple(heads), case.inputs["token_ids"])
    torch.testing.assert_close(done.answers, x[..., ANSWER])


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (torch.zeros(128, 32), "1 of 8 matrices came back: the shape of your first is (128, 32)"),
        (tuple(torch.zeros(4, 128, 32)), "4 of 8 matrices came back"),
        (square()()[:1], "came back"),
        (([1.0] * 4, [2.0] * 4), "A value of type float came back"),
        ((torch.zeros(4, 128, 32), [None] * 4), "came back"),
        (
            (list(torch.zeros(4, 96, 32)), list(torch.zeros(4, 96, 32))),
            "The head of layer 0 has w_q (96, 32), w_k (96, 32), w_v (96, 32), w_o (96, 32).",
        ),
        ([list(torch.zeros(4, 128))] * 2, "Your w_q of layer 0 has 1 axes: (128)."),
        ([list(torch.zeros(4, 128, 128) / 0)] * 2, "Your w_q of layer 0 holds NaN or infinity."),
    ],
)
def test_what_is_no_pair_of_heads(returned, words):
    result = check_two_heads(lambda: returned)
    assert not result.passed
    assert result.mistakes == ()
    assert words in " ".join(repr(result).replace("(128,)", "(128)").split())
