"""Two readers of one beginning: rows of a cache are shared, a state is copied for each."""

from collections.abc import Sequence
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing


def two_readers(
    key: Float[Tensor, "seq d_key"],
    value: Float[Tensor, "seq d_value"],
    tokens: Sequence[str],
    shared: int,
) -> Drawing:
    """Draw what two readers keep who begin with the same tokens and go on with one of their own.

    The first lines are those of a cache, a row of key and value for each token; the others those of
    a state, the sum of key · valueᵀ.

    Args:
        key: of the shared tokens, then one of each reader, (shared + 2, d_key).
        value: (shared + 2, d_value).
        tokens: one for each row.
        shared: how many tokens both readers begin with.

    Raises:
        ValueError: there are not two tokens after the shared ones.

    Example:
        >>> import torch
        >>> from attention.drawings import two_readers
        >>> drawing = two_readers(torch.eye(4), torch.ones(4, 2), ["a", "b", "c", "d"], 2)
        >>> list(drawing.values)
        ['rows', 'row of A', 'row of B', 'state', 'state of A', 'state of B']
    """
    if len(tokens) != shared + 2 or len(key) != len(tokens):
        raise ValueError(
            f"two_readers draws one token of each reader after {shared} shared ones, got "
            f"{len(tokens)} tokens and keys of shape {tuple(key.shape)}; shared can be "
            f"{len(tokens) - 2}"
        )
    rows = torch.cat((key, value), dim=-1)
    state = key[:shared].T @ value[:shared]
    values = {"rows": rows[:shared]}
    for name, own in zip("AB", (shared, shared + 1), strict=True):
        values[f"row of {name}"] = rows[own, None]
    values["state"] = state
    for name, own in zip("AB", (shared, shared + 1), strict=True):
        values[f"state of {name}"] = state + key[own, :, None] * value[own]

    def paint(canvas: Canvas) -> Real:
        size = 14 if canvas.narrow else 20
        left, gap = 52, 28 if canvas.narrow else 110
        y = 20.0
        for title, whole, of, said in (
            ("a cache", "rows", "row of", "shared; each adds a row"),
            ("a state", "state", "state of", "copied, then changed"),
        ):
            largest = max(
                float(each.abs().max()) for name, each in values.items() if of[:3] in name
            )
            canvas.text(4, y, f"{title}: {said}", "bold", anchor="start")
            words = tokens[:shared] if whole == "rows" else ()
            look = {"cell": (size, size), "largest": largest, "digits": None}
            box = canvas.matrix(whole, left, y + 12, values[whole], rows=words, **look)
            high = 0.0
            for nth, name in enumerate("AB"):
                x, own = box.right + gap, values[f"{of} {name}"]
                top = y + 12 + nth * (len(own) * size + 26)
                held = canvas.matrix(f"{of} {name}", x, top + 14, own, **look)
                canvas.text(
                    x, top + 9, f"{name}: “{tokens[shared + nth]}”", size=11, anchor="start"
                )
                canvas.arrow(box.right + 6, box.middle[1], x - 6, held.middle[1])
                high = held.bottom
            y = max(box.bottom, high) + 34
        return y - 20

    start = " ".join(tokens[:shared])
    alt = (
        f"Two readers begin with “{start}”. A cache has {shared} rows of {rows.shape[1]} numbers "
        f"for it, which both use, and one row more for each reader: {len(rows)} rows in all. A "
        f"state has {state.numel()} numbers for the beginning, and each reader needs a copy of all "
        f"of them, to which “{tokens[shared]}” or “{tokens[shared + 1]}” is added."
    )
    return Drawing(paint, alt, values)
