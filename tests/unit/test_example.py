import pytest
import torch

from attention import SENTENCES, SinusoidalPositionalEncoding, running_example
from attention.trained import who_and_whom


def test_three_sentences_of_six_tokens():
    example = running_example()
    assert example.tokens == [
        ["the", "cat", "saw", "the", "other", "cat"],
        ["a", "dog", "chased", "the", "red", "ball"],
        ["birds", "sing", "at", "dawn", "<pad>", "<pad>"],
    ]
    assert example.token_ids.tolist() == [example.vocabulary.encode(row) for row in example.tokens]
    assert example.token_ids.dtype == torch.int64
    assert example.x.shape == (3, 6, 8)
    assert example.x.dtype == torch.float32
    assert not example.x.requires_grad


def test_the_same_word_differs_only_by_its_position():
    x = running_example().x
    table = SinusoidalPositionalEncoding(8).table
    torch.testing.assert_close(x[0, 0] - table[0], x[0, 3] - table[3])  # "the" twice
    assert not torch.allclose(x[0, 0], x[0, 3])
    torch.testing.assert_close(x[2, 4], table[4])  # padding is a row of zeros, plus its position


def test_it_is_the_trained_models():
    example, model = running_example(12, 3), who_and_whom.load(12, 3)
    torch.testing.assert_close(example.x, model.embed(example.token_ids).detach())
    _, weights = example.attention(example.x)
    torch.testing.assert_close(weights, model.attention(example.x)[1].detach())
    assert not weights.requires_grad


def test_the_callers_random_numbers_do_not_change():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = running_example().x
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(running_example().x, first)


def test_other_sentences_and_sizes():
    example = running_example(12, 4, ["One dog, three!", "dogs"])
    assert example.x.shape == (2, 5, 12)
    assert example.tokens[0] == ["<unk>", "dog", "<unk>", "<unk>", "<unk>"]
    assert example.tokens[1] == ["dogs", "<pad>", "<pad>", "<pad>", "<pad>"]
    assert len(SENTENCES) == 3
    with pytest.raises(ValueError, match="n_heads=3 does not divide d_model=8; it can be 1, 2, 4"):
        running_example(8, 3)
    with pytest.raises(ValueError, match="no weights are stored for d_model=10 and n_heads=5"):
        running_example(10, 5)
