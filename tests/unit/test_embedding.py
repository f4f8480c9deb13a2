import math

import pytest
import torch

from attention import SinusoidalPositionalEncoding, TokenEmbedding


def test_embedding_is_the_row_times_the_root_of_d_model():
    embedding = TokenEmbedding(5, 9)
    ids = torch.tensor([[1, 4, 4], [2, 0, 1]])
    x = embedding(ids)
    assert x.shape == (2, 3, 9)
    assert torch.equal(x[0, 1], embedding.table.weight[4] * 3)  # √9 = 3
    assert torch.equal(x[0, 1], x[0, 2])
    assert list(embedding.state_dict()) == ["table.weight"]


def test_embedding_has_variance_one_and_a_padding_row_of_zeros_that_stays():
    torch.manual_seed(0)
    embedding = TokenEmbedding(2000, 64, pad_id=3)
    x = embedding(torch.arange(2000)[None])
    assert x[0, 4:].var().item() == pytest.approx(1, abs=0.02)
    assert not x[0, 3].any()
    x.sum().backward()
    assert not embedding.table.weight.grad[3].any()
    assert (embedding.table.weight.grad[4] == 8).all()
    assert TokenEmbedding(4, 2, pad_id=None)(torch.tensor([[0]])).any()


def test_positional_encoding_is_the_formula_of_the_paper():
    encoding = SinusoidalPositionalEncoding(6, max_length=50).double()
    table = encoding(torch.zeros(1, 50, 6, dtype=torch.float64))[0]
    for position in (0, 1, 7, 49):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_far_positions_are_exact_in_float32():
    table = SinusoidalPositionalEncoding(512, max_length=5000).table
    assert table.dtype == torch.float32
    angle = 4999 / 10000 ** (2 / 512)  # in float32 this number is off by up to 2e-4
    assert table[4999, 2].item() == pytest.approx(math.sin(angle), abs=1e-7)


def test_an_odd_width_ends_with_a_sine():
    table = SinusoidalPositionalEncoding(5, max_length=3).table
    assert table.shape == (3, 5)
    assert table[2, 4].item() == pytest.approx(math.sin(2 / 10000 ** (4 / 5)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_it_adds_keeps_the_type_and_leaves_its_input_alone(dtype):
    encoding = SinusoidalPositionalEncoding(4, max_length=7)
    x = torch.randn(2, 7, 4).to(dtype)
    before = x.clone()
    y = encoding(x)
    assert y.dtype == dtype
    assert torch.equal(x, before)
    assert torch.equal(y[1, :3], x[1, :3] + encoding.table[:3].to(dtype))
    assert not encoding.state_dict()


def test_dropout_acts_on_the_sum_and_only_in_training():
    torch.manual_seed(0)
    encoding = SinusoidalPositionalEncoding(16, max_length=100, dropout=0.5)
    x = torch.full((1, 100, 16), 3.0)
    y = encoding(x)
    kept = y != 0
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(y[kept], (2 * (x + encoding.table[:100]))[kept])
    assert torch.equal(encoding.eval()(x), x + encoding.table[:100])
    assert repr(encoding).startswith(
        "SinusoidalPositionalEncoding(\n  d_model=16, max_length=100\n"
    )
