import pytest
import torch

from attention import SinusoidalPositionalEncoding
from attention.positions.learned import LearnedPositions
from tests.unit.cases import assert_close, gradients
from tests.unit.refusals import refusals


def test_it_adds_the_row_of_each_position_and_learns_it():
    positions = LearnedPositions(4, max_length=5)
    x = torch.randn(3, 5, 4).requires_grad_()
    y = positions(x)
    for m in range(5):
        assert torch.equal(y[:, m], x[:, m] + positions.table[m])
    positions(x[:, :3]).sum().backward()
    assert torch.equal(positions.table.grad[:3], torch.full((3, 4), 3.0))  # three sentences
    assert not positions.table.grad[3:].any()
    assert [(name, x.shape) for name, x in positions.state_dict().items()] == [("table", (5, 4))]
    assert repr(positions).startswith("LearnedPositions(\n  d_model=4, max_length=5\n")


def test_with_the_sines_as_its_table_it_is_the_sinusoidal_encoding():
    """In values, in what flows to x, and in training under dropout."""
    sines = SinusoidalPositionalEncoding(6, max_length=9, dropout=0.4)
    learned = LearnedPositions(6, max_length=9, dropout=0.4)
    learned.load_state_dict({"table": sines.table})
    x = torch.randn(2, 7, 6).requires_grad_()
    torch.manual_seed(0)
    expected = sines(x)
    torch.manual_seed(0)
    output = learned(x)
    assert torch.equal(output, expected)
    assert 0.2 < (output == 0).float().mean() < 0.6
    assert_close(gradients([output], [x])[0], gradients([expected], [x])[0])
    assert torch.equal(learned.eval()(x), x + sines.table[:7])


def test_the_table_is_as_large_as_the_words():
    torch.manual_seed(0)
    table = LearnedPositions(64, max_length=500).table
    assert table.mean().item() == pytest.approx(0, abs=0.02)
    assert table.std().item() == pytest.approx(1, abs=0.02)


def test_what_autocast_made_stays_as_it_is():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = torch.nn.Linear(4, 4)(torch.randn(1, 2, 4))
        assert LearnedPositions(4, max_length=6)(x).dtype == x.dtype == torch.bfloat16


test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: LearnedPositions(4, max_length=6)(torch.zeros(1, 7, 4)),
            "x has 7 positions, more than max_length=6, and no vector was learned for the others; "
            "shorten x, or build and train LearnedPositions(4, max_length=7)",
        ),
    ]
)
