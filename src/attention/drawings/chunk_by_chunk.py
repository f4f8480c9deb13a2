"""A text in chunks: pairs within a chunk, and one state handed on to the next."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing


def chunk_by_chunk(
    query: Float[Tensor, "seq d_key"],
    key: Float[Tensor, "seq d_key"],
    value: Float[Tensor, "seq d_value"],
    tokens: Sequence[str],
    chunk: int,
) -> Drawing:
    """Draw causal linear attention in chunks: a triangle of weights in each, a state between them.

    Args:
        query: features of the queries, (seq, d_key).
        key: features of the keys, (seq, d_key).
        value: (seq, d_value).
        tokens: one for each row.
        chunk: how many tokens are taken at once.

    Source:
        Hua et al. 2022; Sun et al. 2023, §2.1.

    Example:
        >>> import torch
        >>> from attention.drawings import chunk_by_chunk
        >>> chunk_by_chunk(torch.eye(4), torch.eye(4), torch.ones(4, 2), ["a", "b", "c", "d"], 2)
        Drawing of chunk 1 (2, 2), state 1 (4, 2), chunk 2 (2, 2), state 2 (4, 2)
    """
    values, state = {}, query.new_zeros(key.shape[1], value.shape[1])
    pieces = zip(*(x.split(chunk) for x in (query, key, value)), strict=True)
    for nth, (q, k, v) in enumerate(pieces, start=1):
        values[f"chunk {nth}"] = (q @ k.T).tril()
        state = state + k.T @ v
        values[f"state {nth}"] = state
    largest = {
        kind: max(float(each.abs().max()) for name, each in values.items() if kind in name)
        for kind in ("chunk", "state")
    }
    n_chunks = len(values) // 2

    def paint(canvas: Canvas) -> Real:
        cell, high, small = 34, 24, 14  # a state's cells carry no numbers
        down = max(chunk * high, len(state) * small) + 70
        step = (canvas.width - 20) / n_chunks
        for nth in range(n_chunks):
            x, y = (76, 36 + nth * down) if canvas.narrow else (60 + nth * step, 36)
            words = tokens[nth * chunk : (nth + 1) * chunk]
            name = f"chunk {nth + 1}"
            box = canvas.matrix(
                *(name, x, y, values[name], "weights"),
                cell=(cell, high),
                rows=words,
                largest=largest["chunk"],
                digits=1,
            )
            canvas.text(box.middle[0], y - 10, name, "weights of bold")
            name = f"state {nth + 1}"
            held = canvas.matrix(
                *(name, box.right + 44, y, values[name]),
                cell=(small, small),
                largest=largest["state"],
                digits=None,
            )
            canvas.text(held.middle[0], y - 10, name, "bold")
            canvas.arrow(box.right + 8, box.middle[1], held.x - 8, box.middle[1])
            if nth + 1 == n_chunks:
                break
            if canvas.narrow:
                canvas.arrow(held.middle[0], held.bottom + 8, box.right + 12, y + down + 8)
                canvas.text(canvas.width - 6, y + down - 24, "handed on", "quiet", anchor="end")
            else:
                middle = x + step + box.width / 2, box.bottom + 6
                below = f"M{held.middle[0]},{held.bottom + 8}V{box.bottom + 26}H{middle[0]}"
                canvas.path(below, "x stroke", stroke_width=1.5)
                canvas.arrow(middle[0], box.bottom + 26, *middle)
                canvas.text((held.right + middle[0]) / 2, box.bottom + 20, "handed on", "quiet")
        return y + max(box.height, held.height) + (10 if canvas.narrow else 34)

    cut = [", ".join(tokens[i : i + chunk]) for i in range(0, len(tokens), chunk)]
    alt = (
        f"{len(tokens)} tokens in chunks of {chunk}: {'; '.join(cut)}. Within each chunk a "
        "triangle holds the weights of every query on the keys up to its own. No weight goes from "
        f"chunk to chunk: each hands on one state of {state.numel()} numbers, the sum of what was "
        "written so far."
    )
    return Drawing(paint, alt, values)
