"""The running example: three sentences of six tokens, and what the trained model makes of them."""

from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Float, Int64
from torch import Tensor

from attention.multihead import MultiHeadAttention
from attention.text import Vocabulary
from attention.trained.who_and_whom import VOCABULARY, load

# "the" and "cat" occur twice in the first: the same word at two positions. The third gets two
# <pad>.
SENTENCES = ("the cat saw the other cat", "a dog chased the red ball", "birds sing at dawn")


class RunningExample(NamedTuple):
    """What `running_example` returns.

    Attributes:
        tokens: seq strings for each sentence, padded.
        token_ids: (batch, seq).
        x: (batch, seq, d_model).
        attention: the trained `MultiHeadAttention`.
        vocabulary: the `Vocabulary` that the model was trained with.
    """

    tokens: list[list[str]]
    token_ids: Int64[Tensor, "batch seq"]
    x: Float[Tensor, "batch seq d_model"]
    attention: MultiHeadAttention
    vocabulary: Vocabulary


def running_example(
    d_model: int = 8, n_heads: int = 2, sentences: Sequence[str] = SENTENCES
) -> RunningExample:
    """Make a batch of sentences, their X, and the attention of the trained model that embeds them.

    X = embedding · √d_model + positional encoding. Nothing that is returned asks for gradients.

    Args:
        d_model: the width of a token's vector.
        n_heads: how many heads; (d_model, n_heads) is one of the trained models.
        sentences: texts, `SENTENCES` unless given. A word that the model was not trained with is
            read as `<unk>`.

    Raises:
        ValueError: n_heads does not divide d_model, no model of this size was trained, or the
            sentences hold no token at all.

    Source:
        This book's own sentences.

    Example:
        >>> from attention import running_example
        >>> example = running_example()
        >>> example.tokens[2]
        ['birds', 'sing', 'at', 'dawn', '<pad>', '<pad>']
        >>> example.token_ids.shape, example.x.shape
        (torch.Size([3, 6]), torch.Size([3, 6, 8]))
        >>> output, weights = example.attention(example.x)
        >>> weights.shape
        torch.Size([3, 2, 6, 6])
    """
    model = load(d_model, n_heads).requires_grad_(False)
    token_ids = VOCABULARY.encode_batch(sentences)
    x = model.embed(token_ids)
    tokens = [VOCABULARY.decode(row) for row in token_ids]
    return RunningExample(tokens, token_ids, x, model.attention, VOCABULARY)
