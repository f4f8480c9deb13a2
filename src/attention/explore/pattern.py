"""Patterns by position: which pairs meet, which tiles are computed, how far information gets."""

from functools import partial

import torch
from ipywidgets import Dropdown, SelectionSlider
from torch import Tensor

from attention.explore.explorer import Explorer, Frame, explorer
from attention.plots import Picture, plot_matrices
from attention.sparse.fixed import fixed_mask
from attention.sparse.global_tokens import global_mask
from attention.sparse.random_keys import draw_random_keys, random_mask
from attention.sparse.sinks import sink_mask
from attention.sparse.strided import strided_mask
from attention.sparse.window import sliding_window_mask

SEQ = 24
WIDTHS = (2, 4, 8)  # of the window, or of a row
BLOCKS = (1, 2, 4, 8)  # each divides SEQ
LAYERS = (1, 2, 3, 4)
HUB = 12  # the global token
DRAWN = draw_random_keys(SEQ, 1, block=1, generator=torch.Generator().manual_seed(0))
# The mask of each pattern for SEQ tokens, (query, key), by its width.
PATTERNS = {
    "window": partial(sliding_window_mask, SEQ),
    "window and a global token": lambda w: sliding_window_mask(SEQ, w) | global_mask(SEQ, [HUB]),
    "window and random keys": lambda w: (
        sliding_window_mask(SEQ, w) | random_mask(SEQ, DRAWN, block=1)
    ),
    "causal window": partial(sliding_window_mask, SEQ, causal=True),
    "causal window and a sink": partial(sink_mask, SEQ, n_sinks=1),
    "strided": partial(strided_mask, SEQ),
    "fixed": partial(fixed_mask, SEQ),
}


def pattern_explorer() -> Explorer:
    """Explore which pairs of tokens a pattern keeps, and how far information gets in each layer.

    Returns:
        The explorer, with controls ``pattern``, ``width``, ``block``, ``token`` and ``layers``.
    """

    def frame(pattern: str, width: int) -> Frame:
        seen = PATTERNS[pattern](width)
        return {
            "pattern": seen.double(),  # (query, key)
            "computed": torch.stack([pairs_in_tiles(seen, block) for block in BLOCKS]),
            "reached": reached(seen, len(LAYERS)).double(),  # (source, layers + 1, token)
            "blocks": list(BLOCKS),
        }

    def still(frame: Frame) -> Picture:
        layers = controls["layers"].value
        return plot_matrices(
            {
                "who sees whom: row, query; column, key": frame["pattern"],
                f"who has heard of whom after {layers} layers": frame["reached"][:, layers].T,
            },
            rows=[str(i) for i in range(SEQ)],
            signed=False,
            numbers=False,
            alt="A window of four keys among 24 tokens, a row for each query: a band of five along "
            "the diagonal. Beside it of whom each token has heard after three layers: a band of "
            "thirteen.",
        )

    controls = {
        "pattern": Dropdown(options=list(PATTERNS), value="window", description="pattern"),
        "width": SelectionSlider(options=WIDTHS, value=4, description="window / stride"),
        "block": SelectionSlider(options=BLOCKS, value=4, description="block"),
        "token": SelectionSlider(options=range(SEQ), value=0, description="token"),
        "layers": SelectionSlider(options=LAYERS, value=3, description="layers"),
    }
    return explorer("pattern", "A pattern by position", controls, frame, still, reads=None)


def pairs_in_tiles(seen: Tensor, block: int) -> Tensor:
    """How many pairs are computed where a tile of block × block is computed whole or not at all."""
    tiles = seen.unflatten(0, (-1, block)).unflatten(2, (-1, block)).any(3).any(1)
    return tiles.sum().double() * block**2


def reached(seen: Tensor, n_layers: int) -> Tensor:
    """Which tokens have heard of each token after 0, 1, … layers, (source, layers + 1, token).

    A layer adds to the row that enters it, so that a token keeps what it knew.
    """
    heard = [torch.eye(len(seen), dtype=torch.float64)]  # (token, source)
    for _ in range(n_layers):
        heard.append(((seen.double() @ heard[-1] + heard[-1]) > 0).double())
    return torch.stack(heard).permute(2, 0, 1) > 0
