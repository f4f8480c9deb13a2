"""A softmax in tiles: what each query holds after every tile, and how far it is from the result."""

import torch
from ipywidgets import Checkbox, SelectionSlider
from matplotlib.patches import Rectangle
from torch import Tensor
from torch.nn import functional as F

from attention.explore.explorer import Explorer, Frame, explorer
from attention.heads import split_heads
from attention.plots import Picture, plot_matrices
from attention.tiled import scores_of_tile, tiled_attention, tiles
from attention.trained import last_speaker
from attention.trained.last_speaker import WORDS, new_talks

SEQ = 12
TILES = (1, 2, 3, 4, 6, 12)
TALK, HEAD = 1, 0  # several names, and a head whose largest score grows from name to name


def tiles_explorer() -> Explorer:
    """Explore how a maximum, a sum and an output are carried from tile to tile.

    Returns:
        The explorer, with controls ``tile``, ``query``, ``key`` and ``causal``.
    """
    token_ids = new_talks(SEQ).token_ids[TALK : TALK + 1]
    model = last_speaker.load("rotary").requires_grad_(False).double()
    x, attention = model.embed(token_ids), model.attention
    q, k, v = (
        split_heads(layer(x), attention.n_heads)[:, HEAD : HEAD + 1]
        for layer in (attention.w_q, attention.w_k, attention.w_v)
    )
    q, k = attention.attend.transform(q, k)

    def frame(tile: int, causal: bool) -> Frame:
        return {
            "words": [WORDS[i] for i in token_ids[0]],
            "scores": scores(q, k, causal),
            **running(q, k, v, causal, tile),
        }

    def still(frame: Frame) -> Picture:
        return picture(
            frame, controls["tile"].value, controls["query"].value, controls["key"].value
        )

    controls = {
        "tile": SelectionSlider(options=TILES, value=4, description="tile"),
        "query": SelectionSlider(options=range(SEQ), value=SEQ - 1, description="query"),
        "key": SelectionSlider(options=range(SEQ), value=5, description="key"),
        "causal": Checkbox(value=True, description="causal"),
    }
    return explorer("tiles", "A softmax in tiles", controls, frame, still, reads=None)


def picture(frame: Frame, tile: int, query: int, key: int) -> Picture:
    """The scores with their tiles, as far as they were read, and what each query holds then."""
    row, column = query // tile, key // tile
    place = torch.arange(SEQ) // tile
    in_hand = place == row
    unread = (place[:, None] > row) | in_hand[:, None] & (place > column)
    blank = unread | frame["scores"].isneginf()
    # A query whose tile is in hand has read up to that tile; a query before it has read all that it
    # can see.
    after = torch.where(in_hand, column, SEQ // tile - 1)
    states, errors = frame["states"][torch.arange(SEQ), after], frame["errors"][..., 0]
    to_come = torch.arange(SEQ // tile) > after[:, None]
    held = torch.cat([states[:, [0, 2]], errors.masked_fill(to_come, 0.0)], dim=-1)
    rises = " and then ".join(f"{error:.2f}" for error in errors[query, : column + 1])
    drawn = plot_matrices(
        {
            "scores: row, query; column, key": frame["scores"].masked_fill(blank, 0.0),
            "maximum, sum, error after each tile of keys": held,
        },
        rows=[f"{word} {i}" for i, word in enumerate(frame["words"])],
        alt=f"The scores of twelve words with each other, cut into tiles of {tile} queries and "
        f"{tile} keys. The tile in hand is framed, the tile not read yet is pale, and tiles that "
        "lie in the future as a whole are struck through. Beside it what each query holds: its "
        f"largest score, the sum of its weights, and its error. That of query {query} is {rises}.",
    )
    map_of_scores, holds = drawn.figure.axes
    for panel, hidden in ((map_of_scores, blank), (holds, F.pad(to_come, (2, 0)))):
        for text in panel.texts:
            c, r = map(int, text.get_position())
            text.set_visible(not hidden[r, c])
    for r, c in torch.cartesian_prod(*[torch.arange(SEQ // tile)] * 2).tolist():
        left, top = c * tile - 0.5, r * tile - 0.5
        look = {"edgecolor": "#888888", "facecolor": "none"}
        if unread[r * tile, c * tile]:
            look["facecolor"] = "#88888855"
        elif frame["reads"][r * tile, c] == 0.0:
            map_of_scores.plot((left, left + tile), (top + tile, top), color="#888888")
        if (r, c) == (row, column):
            look |= {"edgecolor": "#b3470b", "linewidth": 3, "zorder": 3}
        map_of_scores.add_patch(Rectangle((left, top), tile, tile, **look))
    ends = [f"error\n{i}–{i + tile - 1}" for i in range(0, SEQ, tile)]
    holds.set_xticks(range(2 + len(ends)), ["max", "sum", *ends])
    return drawn


def scores(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    """The scores of one head, (query, key), -inf in the future where it is hidden."""
    everything = slice(0, SEQ)
    return scores_of_tile(scaled(q), k, None, causal, everything, everything)[0, 0]


def scaled(q: Tensor) -> Tensor:
    return q / q.shape[-1] ** 0.5


def running(q: Tensor, k: Tensor, v: Tensor, causal: bool, tile: int) -> dict[str, Tensor]:
    """What each query holds after every tile of keys.

    Returns:
        states (query, tiles, 3): maximum, factor and sum; outputs (query, tiles, d_value); errors
        (query, tiles, 1), the largest difference from the end result; reads (query, tiles), 1 where
        the tile was computed and 0 where it was skipped.
    """
    exact = tiled_attention(q, k, v, causal=causal)[0, 0]
    n_tiles = SEQ // tile
    states, outputs = exact.new_zeros(SEQ, n_tiles, 3), exact.new_zeros(SEQ, n_tiles, v.shape[-1])
    reads = exact.new_zeros(SEQ, n_tiles)
    for rows, visible in tiles(SEQ, SEQ, tile, causal):
        maximum, total, weighted = torch.tensor(torch.finfo(q.dtype).min), 0.0, 0.0
        for nth, columns in enumerate(visible):
            s = scores_of_tile(scaled(q), k, None, causal, rows, columns)[0, 0]
            larger = torch.maximum(maximum, s.amax(-1, keepdim=True))
            factor, weights = (maximum - larger).exp(), (s - larger).exp()
            total = total * factor + weights.sum(-1, keepdim=True)
            weighted = weighted * factor + weights @ v[0, 0, columns]
            maximum = larger
            # A tile that is skipped leaves everything as it was, so this holds from here on.
            states[rows, nth:] = torch.cat([maximum, factor, total], dim=-1)[:, None]
            states[rows, nth + 1 :, 1] = 1.0
            outputs[rows, nth:] = (weighted / total)[:, None]
            reads[rows, nth] = 1.0
    errors = (outputs - exact[:, None]).abs().amax(-1, keepdim=True)
    return {"states": states, "outputs": outputs, "errors": errors, "reads": reads}
