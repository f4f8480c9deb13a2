"""The trained weights that the book shows, by (d_model, n_heads)."""

from pathlib import Path
from typing import NamedTuple

from attention.arguments import require_n_heads
from attention.trained import weight_files
from attention.trained.who_and_whom.evaluation import Head
from attention.trained.who_and_whom.model import SIZES, WhoAndWhom
from attention.trained.who_and_whom.variants import MODELS, VARIANTS, file_name

WEIGHTS = Path(__file__).parent / "weights"


def load(d_model: int = 8, n_heads: int = 2, variant: str | None = None) -> WhoAndWhom:
    """Load a trained model, in evaluation mode.

    Args:
        d_model: the width of a word's vector.
        n_heads: how many heads; (d_model, n_heads) is one of the pairs in `SIZES`.
        variant: one of `VARIANTS`, which were trained with one thing changed, at d_model 8 with 2
            heads ("feed-forward" with 1); None for the model itself.

    Raises:
        ValueError: n_heads does not divide d_model, or no weights are stored for this pair.

    Example:
        >>> from attention.trained.who_and_whom import VOCABULARY, find_verbs, load
        >>> import torch
        >>> tokens = ["a", "dog", "chased", "the", "red", "ball"]
        >>> verb = torch.tensor(find_verbs(tokens))
        >>> answer = load()(VOCABULARY.encode_batch([tokens]), verb)
        >>> VOCABULARY.decode([answer.who.argmax().item(), answer.whom.argmax().item()])
        ['dog', 'ball']
    """
    require_n_heads(d_model, n_heads)
    if (d_model, n_heads) not in SIZES:
        raise ValueError(
            f"no weights are stored for d_model={d_model} and n_heads={n_heads}; "
            f"(d_model, n_heads) can be {', '.join(map(str, SIZES))}"
        )
    name = file_name(d_model, n_heads, variant)
    if name not in MODELS:
        known = [each for each in VARIANTS if file_name(d_model, n_heads, each) in MODELS]
        raise ValueError(
            f"no weights are stored for the variant {variant!r} at d_model={d_model} and "
            f"n_heads={n_heads}; there it can be {', '.join([*known, 'None'])}"
        )
    return weight_files.load(MODELS[name], WEIGHTS / f"{name}.safetensors")


class Measured(NamedTuple):
    """What training measured of a stored model, on 4,000 new sentences.

    Attributes:
        accuracy: the share of their verbs at which both answers are right.
        two_verbs: the same share, for the verbs of sentences with two verbs.
        one_verb: the same share, for the verbs of sentences with one verb.
        one_query: as two_verbs, when all verbs get the same query, the mean of their own.
        without: as two_verbs, without each head.
        roles: for each head, the mean share of the verb's weight on who and on whom.

    Example:
        >>> from attention.trained.who_and_whom import measured
        >>> who, whom = measured(8, 2).roles
        >>> who.who > 0.9, whom.whom > 0.9
        (True, True)
    """

    accuracy: float
    two_verbs: float
    one_verb: float
    one_query: float
    without: list[float]
    roles: list[Head]


def measured(d_model: int, n_heads: int) -> Measured:
    """Read what `make train` measured of a stored model.

    Example:
        >>> from attention.trained.who_and_whom import measured
        >>> stored = measured(8, 2)
        >>> stored.two_verbs > 0.99, stored.one_query < 0.3
        (True, True)
    """
    stored = weight_files.metadata(WEIGHTS / f"{file_name(d_model, n_heads)}.safetensors")
    return Measured(**stored | {"roles": [Head(*pair) for pair in stored["roles"]]})
