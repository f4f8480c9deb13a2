"""The state as a matrix: a sum writes on top of what is there, the delta rule erases it first."""

from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing

WORDS = {"state": "x", "erase": "mistake", "write": "v", "new": "x"}  # by what is drawn, its look


def erase_then_write(
    state: Float[Tensor, "d_key d_value"],
    key: Float[Tensor, " d_key"],
    value: Float[Tensor, " d_value"],
    beta: float = 1.0,
) -> Drawing:
    """Draw how one pair is written into a state, by a sum and by the delta rule.

    Args:
        state: what was written before, (d_key, d_value).
        key: of the new pair, of length 1, (d_key,).
        value: of the new pair, (d_value,).
        beta: what part of the error the delta rule corrects. The sum writes all of it.

    Source:
        Schlag et al. 2021, §4.2; multiplied out, Zhang et al. 2025, §2.2.

    Example:
        >>> import torch
        >>> from attention.drawings import erase_then_write
        >>> drawing = erase_then_write(torch.eye(2), torch.tensor([1.0, 0]), torch.tensor([0.0, 3]))
        >>> drawing.values["delta new"].tolist()
        [[0.0, 3.0], [0.0, 1.0]]
    """
    written = key[:, None] * value
    erased = beta * key[:, None] * (key @ state)
    rules = {
        "sum": {"state": state, "write": written, "new": state + written},
        "delta": {
            "state": state,
            "erase": erased,
            "write": beta * written,
            "new": state - erased + beta * written,
        },
    }
    values = {
        f"{rule} {part}": tensor for rule, each in rules.items() for part, tensor in each.items()
    }
    largest = max(float(each.abs().max()) for each in values.values())
    titles = {"sum": "a sum writes on top", "delta": "the delta rule erases along k first"}
    signs = {"erase": "−", "write": "+", "new": "="}

    def paint(canvas: Canvas) -> Real:
        columns = state.shape[1]
        wide, gap = (20, 22) if canvas.narrow else (34, 56)
        y = 20
        for rule, parts in rules.items():
            canvas.text(8, y, titles[rule], "bold", anchor="start")
            for place, name in enumerate(WORDS):
                x = 8 + place * (columns * wide + gap)
                if name not in parts:
                    continue
                box = canvas.matrix(
                    f"{rule} {name}",
                    *(x, y + 30, parts[name], WORDS[name]),
                    cell=(wide, 22),
                    largest=largest,
                    digits=0 if canvas.narrow else 1,
                )
                canvas.text(box.middle[0], y + 22, name, f"{WORDS[name]} of", size=12)
                if name in signs:
                    canvas.text(x - gap / 2, box.middle[1] + 5, signs[name], "bold", size=16)
            y = box.bottom + 32
        return y - 20

    def told(numbers: Tensor) -> str:
        return ", ".join(f"{number:z.1f}".replace("-", "−") for number in numbers.tolist())

    answers = {rule: key @ each["new"] for rule, each in rules.items()}
    alt = (
        "A state as a matrix, into which one pair is written, twice. A sum adds key times value, "
        f"and then answers the key with {told(answers['sum'])}. The delta rule first takes away "
        f"what the state answers to the key, {told(key @ state)}, then adds, and answers "
        f"{told(answers['delta'])}; the value was {told(value)}."
    )
    return Drawing(paint, alt, values)
