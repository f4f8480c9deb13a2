"""The running example: three sentences, six tokens each after padding, and attention on them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.multihead import MultiHeadAttention
from attention.text import Vocabulary

# "the" and "cat" come twice in the first: the same word, two positions. The third gets two <pad>.
SENTENCES = ("the cat saw the other cat", "a dog chased the red ball", "birds sing at dawn")


class RunningExample(NamedTuple):
    """What `running_example` returns.

    Attributes:
        tokens: seq strings for each sentence, padded.
        token_ids: (batch, seq).
        x: (batch, seq, d_model).
        vocabulary: the `Vocabulary` of the sentences.
    """

    tokens: list[list[str]]
    token_ids: Int64[Tensor, "batch seq"]
    x: Float[Tensor, "batch seq d_model"]
    vocabulary: Vocabulary


def running_example(
    d_model: int = 8, sentences: Sequence[str] = SENTENCES, *, seed: int = 0
) -> RunningExample:
    """Make a batch of sentences and X = embedding · √d_model + positional encoding.

    `seed` draws the embedding; the caller's random numbers stay as they were.

    Args:
        d_model: the width of a token's vector.
        sentences: texts, `SENTENCES` unless given.
        seed: for the embedding.

    Source:
        This book's own sentences.

    Example:
        >>> from attention import running_example
        >>> tokens, token_ids, x, vocabulary = running_example(d_model=8)
        >>> tokens[2]
        ['birds', 'sing', 'at', 'dawn', '<pad>', '<pad>']
        >>> token_ids.shape, x.shape
        (torch.Size([3, 6]), torch.Size([3, 6, 8]))
    """
    vocabulary = Vocabulary(sentences)
    token_ids = vocabulary.encode_batch(sentences)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)
        embedding = TokenEmbedding(len(vocabulary), d_model, pad_id=vocabulary.pad_id)
        encoding = SinusoidalPositionalEncoding(d_model, max_length=token_ids.shape[1])
        x = encoding(embedding(token_ids))
    tokens = [vocabulary.decode(row) for row in token_ids]
    return RunningExample(tokens, token_ids, x, vocabulary)


def example_attention(d_model: int = 8, n_heads: int = 4, *, seed: int = 0) -> MultiHeadAttention:
    """Make a module with weights drawn from `seed`, in float64 and without gradients.

    The weights are those that float32 gets after `torch.manual_seed(seed)`; the caller's random
    numbers stay as they were.

    Raises ValueError where n_heads does not divide d_model.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return MultiHeadAttention(d_model, n_heads).double().requires_grad_(False)
