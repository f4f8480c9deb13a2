import torch

from attention import SENTENCES, SinusoidalPositionalEncoding, running_example


def test_three_sentences_of_six_tokens():
    tokens, token_ids, x, vocabulary = running_example()
    assert tokens == [
        ["the", "cat", "saw", "the", "other", "cat"],
        ["a", "dog", "chased", "the", "red", "ball"],
        ["birds", "sing", "at", "dawn", "<pad>", "<pad>"],
    ]
    assert token_ids.tolist() == [vocabulary.encode(row) for row in tokens]
    assert token_ids.dtype == torch.int64
    assert x.shape == (3, 6, 8)
    assert x.dtype == torch.float32
    assert not x.requires_grad


def test_the_same_word_differs_only_by_its_position():
    x = running_example().x
    table = SinusoidalPositionalEncoding(8).table
    torch.testing.assert_close(x[0, 0] - table[0], x[0, 3] - table[3])  # "the" twice
    assert not torch.allclose(x[0, 0], x[0, 3])
    torch.testing.assert_close(x[2, 4], table[4])  # padding is a row of zeros, plus its position


def test_the_seed_decides_and_the_callers_numbers_do_not_change():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = running_example().x
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(running_example().x, first)
    assert not torch.equal(running_example(seed=1).x, first)


def test_other_sentences_and_sizes():
    example = running_example(12, ["One two, three!", "four"])
    assert example.x.shape == (2, 5, 12)
    assert example.tokens[1] == ["four", "<pad>", "<pad>", "<pad>", "<pad>"]
    assert len(SENTENCES) == 3
