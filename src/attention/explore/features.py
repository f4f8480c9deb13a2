"""Random features: softmax's weights of a trained head, estimated, and how far off they are."""

import torch
from ipywidgets import Checkbox, SelectionSlider
from torch import Tensor

from attention.dot_product import scaled_dot_product_attention
from attention.explore.explorer import Explorer, Frame, explorer
from attention.heads import split_heads
from attention.linear.performer import orthogonal_projection, performer_attention
from attention.plots import Picture, plot_matrices
from attention.trained import recall
from attention.trained.recall import new_pairs

PAIRS, HEAD = 8, 1
FEATURES = (16, 64, 256, 1024, 4096)  # multiples of d_key: whole groups of orthogonal rows
LENGTHS = (0.25, 0.35, 0.5, 0.7, 1.0)
SHOWN, DRAWS = 4, 100  # draws that can be looked at, and those that the error is measured on


def features_explorer() -> Explorer:
    """Explore how well random features estimate softmax's weights.

    Queries and keys are those of a head that was trained to find a pair by its key, as they are or
    shortened.

    Returns:
        The explorer, with controls ``features``, ``length``, ``draw`` and ``orthogonal``.
    """
    keys, q, k = asked_pairs()
    drawn = {
        orthogonal: [projections(count, q.shape[-1], orthogonal) for count in FEATURES]
        for orthogonal in (False, True)
    }

    def frame(length: float, orthogonal: bool) -> Frame:
        _, exact = scaled_dot_product_attention(length * q, length * k, k)
        estimates = [
            torch.stack([estimated_weights(length * q, length * k, each) for each in of_count])
            for of_count in drawn[orthogonal]
        ]
        shares = torch.stack([misplaced(each, exact) for each in estimates])  # (features, draws)
        ends = torch.tensor([0.1, 0.9], dtype=shares.dtype)
        return {
            "keys": keys,
            "features": FEATURES,
            "exact": exact,
            "estimates": torch.stack([each[:SHOWN] for each in estimates]),
            "misplaced": shares[:, :SHOWN],
            # The mean over all draws, and the ends between which 80 of 100 lie: (features, 3).
            "spread": torch.cat([shares.mean(1, keepdim=True), shares.quantile(ends, 1).T], 1),
        }

    def still(frame: Frame) -> Picture:
        count, length = controls["features"].value, controls["length"].value
        nth = FEATURES.index(count)
        return plot_matrices(
            {"softmax": frame["exact"], f"{count} features": frame["estimates"][nth, 0]},
            rows=[f"asks {key}" for key in keys],
            columns=[str(key) for key in keys],
            signed=False,
            alt=f"The weights of a trained head for eight questions, each of which asks for the "
            f"key of one of eight pairs, with queries and keys {length} times as long as trained: "
            f"softmax's, and beside them what {count} random features make of them. Of a row's "
            f"weight, {frame['misplaced'][nth, 0]:.2f} lies elsewhere than softmax puts it.",
        )

    controls = {
        "features": SelectionSlider(options=FEATURES, value=256, description="features"),
        "length": SelectionSlider(options=LENGTHS, value=0.5, description="q and k times"),
        "draw": SelectionSlider(options=range(1, SHOWN + 1), value=1, description="draw"),
        "orthogonal": Checkbox(value=True, description="orthogonal"),
    }
    return explorer("features", "Weights by random features", controls, frame, still, reads=None)


def asked_pairs() -> tuple[list[int], Tensor, Tensor]:
    """Eight pairs' keys; from one head, the query for each key and each pair's key, (8, d_key)."""
    model = recall.load().requires_grad_(False).double()
    pairs = new_pairs(PAIRS, 1)
    x, attention = model.embed(pairs.keys, pairs.values, pairs.keys), model.attention
    q, k = (split_heads(w(x), attention.n_heads)[0, HEAD] for w in (attention.w_q, attention.w_k))
    return pairs.keys[0].tolist(), q[PAIRS:], k[:PAIRS]


def projections(n_features: int, d_key: int, orthogonal: bool) -> list[Tensor]:
    """The same draws at every call, each (features, d_key)."""
    generators = [torch.Generator().manual_seed(seed) for seed in range(DRAWS)]
    if orthogonal:
        return [orthogonal_projection(n_features, d_key, generator=each) for each in generators]
    return [torch.randn(n_features, d_key, generator=each) for each in generators]


def estimated_weights(q: Tensor, k: Tensor, projection: Tensor) -> Tensor:
    """What random features make of softmax's weights, (query, key), with the identity as values."""
    q, k, identity = (x[None, None] for x in (q, k, torch.eye(len(k), dtype=k.dtype)))
    return performer_attention(q, k, identity, projection)[0, 0]


def misplaced(weights: Tensor, exact: Tensor) -> Tensor:
    """The share of a row's weight that lies elsewhere than it should, as the mean over the rows."""
    return (weights - exact).abs().sum(-1).mean(-1) / 2
