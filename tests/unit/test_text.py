import pytest
import torch

from attention import SENTENCES, Vocabulary, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cat SAW the other cat", ["the", "cat", "saw", "the", "other", "cat"]),
        ("  tabs\tand\nlines ", ["tabs", "and", "lines"]),
        ("Don't stop, well-fed cat!", ["don't", "stop", ",", "well-fed", "cat", "!"]),
        ("«Où est-il?» 3.5", ["«", "où", "est-il", "?", "»", "3", ".", "5"]),
        ("a <pad> b", ["a", "<", "pad", ">", "b"]),  # no text can smuggle in a special token
        ("Cafe\u0301s, Cafés", ["cafés", ",", "cafés"]),  # an accent of its own, and not
        ("", []),
    ],
)
def test_tokenize(text, tokens):
    assert tokenize(text) == tokens


def test_ids_follow_first_appearance():
    vocabulary = Vocabulary(["the cat", "a cat, the dog"])
    assert vocabulary.tokens == ("<pad>", "<unk>", "the", "cat", "a", ",", "dog")
    assert (vocabulary.pad_id, vocabulary.unk_id, len(vocabulary)) == (0, 1, 7)
    assert "dog" in vocabulary
    assert "bird" not in vocabulary
    assert repr(vocabulary) == "Vocabulary(7 tokens, unknown=True)"


def test_texts_and_lists_of_tokens_are_the_same():
    assert Vocabulary(["the cat", "sat"]).tokens == Vocabulary([["the", "cat"], ["sat"]]).tokens
    assert Vocabulary("the cat").tokens == Vocabulary(["the", "cat"]).tokens
    vocabulary = Vocabulary(["the cat"])
    assert vocabulary.encode("The cat") == vocabulary.encode(["the", "cat"]) == [2, 3]


def test_decode_inverts_encode():
    vocabulary = Vocabulary(SENTENCES)
    for sentence in SENTENCES:
        ids = vocabulary.encode(sentence)
        assert vocabulary.decode(ids) == tokenize(sentence)
        assert vocabulary.decode(torch.tensor(ids)) == tokenize(sentence)


def test_an_unknown_token_is_unk():
    vocabulary = Vocabulary(["the cat"])
    assert vocabulary.encode("the bird") == [2, 1]
    assert vocabulary.decode([2, 1]) == ["the", "<unk>"]


def test_a_vocabulary_without_unk():
    vocabulary = Vocabulary(["the cat"], unknown=False)
    assert vocabulary.tokens == ("<pad>", "the", "cat")
    assert vocabulary.unk_id is None


def test_a_batch_is_padded_on_the_right():
    vocabulary = Vocabulary(["a b c", "b"])
    batch = vocabulary.encode_batch(["a b c", "b"])
    assert batch.dtype == torch.int64
    assert batch.tolist() == [[2, 3, 4], [3, 0, 0]]
    assert vocabulary.encode_batch(["b", ""], length=2).tolist() == [[3, 0], [0, 0]]
