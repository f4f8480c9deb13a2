"""What one token leaves in the cache, with four kinds of attention side by side."""

from collections.abc import Mapping
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point

HEAD, UNIT = 34, 6  # what a head takes, and a number


def four_caches(
    kept: Mapping[str, Float[Tensor, "2 _ d_key"]],
    latent: Float[Tensor, " d_latent"],
    rotary_key: Float[Tensor, " d_rotary"],
    n_heads: int,
) -> Drawing:
    """Draw the keys and values that a token leaves in a cache, or its latent row and rotary key.

    What is kept is shaded, each number by its size. What is made of it again is dashed.

    Args:
        kept: for each kind of attention (2, kv_heads, d_key), the token's keys and its values.
        latent: (d_latent,), the token's latent row.
        rotary_key: (d_rotary,), its rotary key.
        n_heads: how many heads of queries; kv_heads divides it.

    Example:
        >>> import torch
        >>> from attention.drawings import four_caches
        >>> kept = {"multi-head": torch.ones(2, 4, 3), "multi-query": torch.ones(2, 1, 3)}
        >>> drawing = four_caches(kept, torch.ones(4), torch.ones(2), n_heads=4)
        >>> len(drawing.values), "multi-query, 1 KV head, each read by 4 of them" in drawing.alt
        (12, True)
    """
    values = {
        f"{what} of KV head {i}, {kind}": heads[i][:, None]
        for kind, both in kept.items()
        for what, heads in zip(("key", "value"), both, strict=True)
        for i in range(len(heads))
    }
    values |= {"latent row": latent[None], "rotary key": rotary_key[None]}
    d_key = next(iter(kept.values())).shape[-1]
    counts = {kind: both.numel() for kind, both in kept.items()}
    d_latent, d_rotary = len(latent), len(rotary_key)

    def paint(canvas: Canvas) -> Real:
        columns = 2 if canvas.narrow else len(counts) + 1
        wide, high = canvas.width / columns, 128 + UNIT * d_key
        for nth, kind in enumerate([*counts, "latent"]):
            x, y = wide * (nth % columns + 0.5), high * (nth // columns)
            canvas.text(x, y + 18, kind, "bold")
            places = [x + HEAD * (i - (n_heads - 1) / 2) for i in range(n_heads)]
            for i, place in enumerate(places):
                canvas.rectangle(place - 12, y + 28, 24, 18, "q fill", fill_opacity=0.16)
                canvas.rectangle(place - 12, y + 28, 24, 18, "q stroke")
                canvas.text(place, y + 41, f"q {i}", size=11)
            if kind == "latent":
                draw_latent(canvas, x, y, places)
            else:
                draw_heads(canvas, kind, y, places)
            total = counts.get(kind, f"{d_latent} + {d_rotary}")
            canvas.text(x, y + high - 14, f"kept: {total} numbers", "bold", size=12)
        return high * (nth // columns + 1)

    def draw_heads(canvas: Canvas, kind: str, y: Real, places: list[Real]) -> None:
        n_kv_heads = kept[kind].shape[1]
        group = n_heads // n_kv_heads
        size = {"cell": (12, UNIT), "digits": None}
        for i in range(n_kv_heads):
            readers = places[i * group : (i + 1) * group]
            middle = sum(readers) / group
            for place in readers:
                canvas.path(f"M{point(place, y + 46)}L{point(middle, y + 66)}", "edge")
            for what, left in (("key", middle - 13), ("value", middle + 1)):
                name = f"{what} of KV head {i}, {kind}"
                box = canvas.matrix(name, left, y + 66, values[name], what[0], **size)
                canvas.text(box.middle[0], box.bottom + 14, what[0], f"{what[0]} of", size=11)

    def draw_latent(canvas: Canvas, x: Real, y: Real, places: list[Real]) -> None:
        long = UNIT * (d_latent + d_rotary)
        left, row = x - long / 2, y + 118
        for place in places:
            canvas.path(f"M{point(place, y + 46)}V{y + 66}", "edge")
            for look, start in (("k", place - 13), ("v", place + 1)):
                canvas.rectangle(start, y + 66, 12, 24, f"{look} stroke", stroke_dasharray="3 3")
            end = left + UNIT * d_latent * (0.5 + 0.2 * (place - x) / HEAD)
            canvas.path(f"M{point(place, y + 90)}L{point(end, row)}", "edge")
        size = {"cell": (UNIT, 12), "digits": None}
        box = canvas.matrix("latent row", left, row, latent[None], "x", **size)
        canvas.text(box.middle[0], row + 27, "latent row", size=11)
        box = canvas.matrix(
            "rotary key", left + UNIT * d_latent + 3, row, rotary_key[None], "k", **size
        )
        canvas.text(box.right, row + 42, "rotary key of all", "k of", size=11, anchor="end")

    told = []
    for kind, (keys, _) in kept.items():
        group = n_heads // len(keys)
        shared = f"each read by {group} of them" if group > 1 else "one for each of them"
        heads = "1 KV head" if len(keys) == 1 else f"{len(keys)} KV heads"
        told.append(f"{kind}, {heads}, {shared}: {counts[kind]} numbers kept")
    alt = (
        f"What one token leaves in the cache, for {n_heads} heads of queries. {'; '.join(told)}; "
        f"latent, a row of {d_latent} of which every head's own key and value are made, and a "
        f"rotary key of {d_rotary} that all heads read: {d_latent + d_rotary} numbers kept."
    )
    return Drawing(paint, alt, values)
