"""The trained weights, by (d_model, n_heads)."""

from pathlib import Path
from typing import NamedTuple

from attention.arguments import require_n_heads
from attention.trained import weight_files
from attention.trained.two_verbs.model import MODELS, SIZES, file_name
from attention.trained.who_and_whom.evaluation import Head
from attention.trained.who_and_whom.model import WhoAndWhom

WEIGHTS = Path(__file__).parent / "weights"


def load(d_model: int = 8, n_heads: int = 2) -> WhoAndWhom:
    """Load a trained model, in evaluation mode.

    Args:
        d_model: the width of a word's vector.
        n_heads: how many heads; (d_model, n_heads) is one of the pairs in `SIZES`.

    Raises:
        ValueError: n_heads does not divide d_model, or no weights are stored for this pair.

    Example:
        >>> from attention.trained import two_verbs
        >>> import torch
        >>> tokens = "the cat saw the dog and the dog chased the other cat".split()
        >>> verbs = torch.tensor(two_verbs.find_verbs(tokens))
        >>> token_ids = two_verbs.VOCABULARY.encode_batch([tokens, tokens])
        >>> answer = two_verbs.load()(token_ids, verbs)
        >>> two_verbs.VOCABULARY.decode(answer.who.argmax(-1))
        ['cat', 'dog']
    """
    require_n_heads(d_model, n_heads)
    if (d_model, n_heads) not in SIZES:
        raise ValueError(
            f"no weights are stored for d_model={d_model} and n_heads={n_heads}; "
            f"(d_model, n_heads) can be {', '.join(map(str, SIZES))}"
        )
    name = file_name(d_model, n_heads)
    return weight_files.load(MODELS[name], WEIGHTS / f"{name}.safetensors")


class Measured(NamedTuple):
    """What training measured of a stored model, at the verbs of 4,000 new sentences.

    Attributes:
        accuracy: the share of which both answers are right.
        two_verbs: of those of sentences with two verbs.
        one_verb: of those of sentences with one.
        one_query: as two_verbs, when all verbs get one query, the mean of theirs.
        without: as two_verbs, without each head.
        roles: for each head, the mean share of the verb's weight on who and on whom.

    Example:
        >>> from attention.trained import two_verbs
        >>> who, whom = two_verbs.measured().roles
        >>> who.who > 0.9, whom.whom > 0.9
        (True, True)
    """

    accuracy: float
    two_verbs: float
    one_verb: float
    one_query: float
    without: list[float]
    roles: list[Head]


def measured(d_model: int = 8, n_heads: int = 2) -> Measured:
    """Read what `make train` measured of a stored model.

    Args:
        d_model: as for `load`.
        n_heads: as for `load`.

    Example:
        >>> from attention.trained import two_verbs
        >>> stored = two_verbs.measured()
        >>> stored.two_verbs > 0.99, stored.one_query < 0.3
        (True, True)
    """
    stored = weight_files.metadata(WEIGHTS / f"{file_name(d_model, n_heads)}.safetensors")
    return Measured(**stored | {"roles": [Head(*pair) for pair in stored["roles"]]})
