"""What a layer costs: projections, pairs of tokens and feed-forward, by n and d_model."""

import math

import torch
from ipywidgets import SelectionSlider
from torch import Tensor

from attention.cost.dense import multi_head
from attention.explore.explorer import Explorer, Frame, explorer
from attention.plots import Picture, plot_curves

PARTS = ["projections", "pairs", "feed-forward"]
D_MODELS = (384, 768, 1536, 3072, 6144, 12288)  # 768: GPT-2's smallest; 12,288: GPT-3
N_HEADS = (1, 12, 24, 96)  # each divides all of these
LENGTHS = [2**k for k in range(6, 18)]  # 64 to 131,072 tokens
CURVE = [round(2 ** (k / 4)) for k in range(4 * 6, 4 * 17 + 1)]  # where the shares are drawn


def cost_explorer() -> Explorer:
    """Explore which part of a transformer's layer takes most of its multiply-adds.

    The layer is self-attention without a mask and a feed-forward layer that is 4 · d_model wide.

    Returns:
        The explorer, with controls ``d_model``, ``n_heads`` and ``n``.
    """

    def frame(d_model: int, n_heads: int) -> Frame:
        at_lengths = torch.stack([multiply_adds(n, d_model, n_heads) for n in LENGTHS])
        along = torch.stack([multiply_adds(n, d_model, n_heads) for n in CURVE])
        costs = [multi_head(n, d_model, n_heads) for n in LENGTHS]
        held = torch.tensor([(cost.cache, cost.memory) for cost in costs], dtype=torch.float64)
        return {
            "parts": at_lengths[..., None] / 1e6,  # (lengths, parts, 1), in millions
            "held": held[..., None] / 1e6,  # (lengths, 2, 1), in millions
            "shares": along / along.sum(-1, keepdim=True),  # (curve, parts)
            "names": PARTS,
            "lengths": LENGTHS,
            "curve": CURVE,
        }

    def still(frame: Frame) -> Picture:
        picture = plot_curves(
            dict(zip(PARTS, frame["shares"].T, strict=True)),
            label="share",
            along="number of tokens n",
            alt="The shares of a layer with d_model 768 by the number of tokens, 64 to 131,072. "
            "Feed-forward takes most of a short text and pairs most of a long one. Two marks show "
            "where pairs overtake: the projections at 1,536 tokens, all the rest at 4,608.",
        )
        (panel,) = picture.figure.axes
        shown = LENGTHS[1::2]
        panel.set_xticks([CURVE.index(n) for n in shown], [f"{n:,}" for n in shown])
        for n, side in ((2 * 768, "right"), (6 * 768, "left")):
            x = 4 * math.log2(n / LENGTHS[0])  # the curve has four points for each doubling
            panel.axvline(x, color="#888888", linewidth=0.8)
            panel.text(x, 0.93, f" {n:,} ", ha=side)
        return picture

    controls = {
        "d_model": SelectionSlider(options=D_MODELS, value=768, description="d_model"),
        "n_heads": SelectionSlider(options=N_HEADS, value=12, description="n_heads"),
        "n": SelectionSlider(options=LENGTHS, value=256, description="n"),
    }
    return explorer("cost", "What a layer costs", controls, frame, still, reads=None)


def multiply_adds(n: int, d_model: int, n_heads: int) -> Tensor:
    """The multiply-adds of a layer's projections, pairs and feed-forward, (parts,)."""
    attention = multi_head(n, d_model, n_heads)
    feed_forward = 2 * n * d_model * (4 * d_model)
    return torch.tensor(
        [attention.projections, attention.mixing, feed_forward], dtype=torch.float64
    )
