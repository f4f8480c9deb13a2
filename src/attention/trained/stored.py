"""The trained weights that the book shows, by (d_model, n_heads): small files beside this one."""

from pathlib import Path
from typing import NamedTuple

from attention.arguments import require_n_heads
from attention.trained import weight_files
from attention.trained.fitting import build
from attention.trained.model import WhoAndWhom
from attention.trained.training import Head
from attention.trained.variants import VARIANTS

WEIGHTS = Path(__file__).parent / "weights"


def stored() -> list[tuple[int, int]]:
    """List the (d_model, n_heads) of which weights are stored, in order.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.stored import stored
        >>> (8, 2) in stored()
        True
    """
    pairs = [path.stem.split("x") for path in WEIGHTS.glob("*.safetensors") if "-" not in path.stem]
    return sorted((int(d_model), int(n_heads)) for d_model, n_heads in pairs)


def load_trained(d_model: int = 8, n_heads: int = 2, variant: str | None = None) -> WhoAndWhom:
    """Load a trained model, in evaluation mode.

    Args:
        d_model: the width of a word's vector.
        n_heads: how many heads; (d_model, n_heads) is one of the pairs that `stored` lists.
        variant: one of `VARIANTS`, which were trained with one thing changed, at d_model 8 with 2
            heads ("feed-forward" with 1); None for the model itself.

    Raises:
        ValueError: n_heads does not divide d_model, or no weights are stored for this pair.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.grammar import VOCABULARY, find_verb
        >>> from attention.trained.stored import load_trained
        >>> import torch
        >>> tokens = ["a", "dog", "chased", "the", "red", "ball"]
        >>> verb = torch.tensor([find_verb(tokens)])
        >>> answer = load_trained()(VOCABULARY.encode_batch([tokens]), verb)
        >>> VOCABULARY.decode([answer.who.argmax().item(), answer.whom.argmax().item()])
        ['dog', 'ball']
    """
    require_n_heads(d_model, n_heads)
    if (d_model, n_heads) not in stored():
        raise ValueError(
            f"no weights are stored for d_model={d_model} and n_heads={n_heads}; "
            f"(d_model, n_heads) can be {', '.join(map(str, stored()))}"
        )
    model = build(lambda: WhoAndWhom(d_model, n_heads))
    if variant is not None:
        if not path(d_model, n_heads, variant).exists():
            known = [name for name in VARIANTS if path(d_model, n_heads, name).exists()]
            raise ValueError(
                f"no weights are stored for the variant {variant!r} at d_model={d_model} and "
                f"n_heads={n_heads}; there it can be {', '.join([*known, 'None'])}"
            )
        VARIANTS[variant](model)
    return weight_files.load(model, path(d_model, n_heads, variant))


class Measured(NamedTuple):
    """What training measured of a stored model, on 4,000 new sentences.

    Attributes:
        accuracy: the share of them of which both answers are right.
        roles: for each head, the mean share of the verb's weight on who and on whom.
    """

    accuracy: float
    roles: list[Head]


def measured(d_model: int, n_heads: int) -> Measured:
    """Read what `make train` measured of a stored model.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.stored import measured
        >>> measured(8, 2).accuracy > 0.99
        True
    """
    told = weight_files.told(path(d_model, n_heads))
    return Measured(told["accuracy"], [Head(*pair) for pair in told["roles"]])


def store(
    model: WhoAndWhom, accuracy: float, roles: list[Head], variant: str | None = None
) -> None:
    """Write the weights of a model in half precision, which `train` has rounded them to."""
    weight_files.write(
        path(model.attention.d_model, model.attention.n_heads, variant),
        weight_files.half(model),
        accuracy=round(accuracy, 4),
        roles=[[round(share, 3) for share in head] for head in roles],
    )


def path(d_model: int, n_heads: int, variant: str | None = None) -> Path:
    ending = "" if variant is None else f"-{variant}"
    return WEIGHTS / f"{d_model}x{n_heads}{ending}.safetensors"
