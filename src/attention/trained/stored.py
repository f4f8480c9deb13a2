"""The trained weights that the book shows, by (d_model, n_heads): small files beside this one."""

from pathlib import Path

from safetensors.torch import load_file, save_file

from attention.trained.model import WhoAndWhom

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
    return sorted(tuple(map(int, path.stem.split("x"))) for path in WEIGHTS.glob("*.safetensors"))


def load_trained(d_model: int = 8, n_heads: int = 2) -> WhoAndWhom:
    """Load a trained model, in evaluation mode.

    Args:
        d_model: the width of a word's vector.
        n_heads: how many heads; (d_model, n_heads) is one of the pairs that `stored` lists.

    Raises:
        ValueError: no weights are stored for this pair.

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
    if (d_model, n_heads) not in stored():
        raise ValueError(
            f"no weights are stored for d_model={d_model} and n_heads={n_heads}; "
            f"(d_model, n_heads) can be {', '.join(map(str, stored()))}"
        )
    model = WhoAndWhom(d_model, n_heads)
    model.load_state_dict(load_file(path(d_model, n_heads)))
    return model.eval()


def store(model: WhoAndWhom) -> None:
    """Write the weights of a model, which `load_trained` reads."""
    d_model, n_heads = model.attention.d_model, model.attention.n_heads
    WEIGHTS.mkdir(exist_ok=True)
    save_file(model.state_dict(), path(d_model, n_heads))


def path(d_model: int, n_heads: int) -> Path:
    return WEIGHTS / f"{d_model}x{n_heads}.safetensors"
