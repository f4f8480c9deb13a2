"""Pairs by content: which vectors share a bucket, which pairs are computed, what a query misses."""

import math

import torch
from ipywidgets import SelectionSlider
from torch import Tensor
from torch.nn import functional as F

from attention.explore.explorer import Explorer, Frame, explorer
from attention.plots import Picture, plot_matrices
from attention.sparse.hashing import largest_product, lsh_buckets

# In degrees. The query points up, its key lies `angle` away from it, and no other token comes near.
QUERY, KEY = 12, 3
OTHERS = (196, 343, 265, 217, 238, 310, 202, 289, 334, 250, 226, 277, 322, 301)
ANGLES = tuple(range(0, 91, 15))
N_BUCKETS, ROUNDS, CHUNKS, DRAWS = (4, 8, 16), (1, 2, 4), (4, 8, 16), 5
SEQ, SCALE = 16, 8.0  # tokens, and the length of each as a query
STEP = 3  # degrees from point to point of a circle
CURVE = range(0, 91, 5)  # angles at which the chance is measured
TRIES = 1000


def buckets_explorer() -> Explorer:
    """Explore when hashing brings a query and its key together, and what it costs when it does not.

    Returns:
        The explorer, with controls ``angle``, ``n_buckets``, ``rounds``, ``chunk`` and ``draw``.
    """
    tokens = token_vectors()
    weights = dense_weights(tokens)

    def frame(n_buckets: int) -> Frame:
        generator = torch.Generator().manual_seed(n_buckets)
        shape = (DRAWS * max(ROUNDS), 2, n_buckets // 2)
        rotations = torch.randn(shape, generator=generator).double()
        buckets = hashed(tokens, rotations)  # (angles, draws, rounds, seq)
        circle = directions(torch.arange(0, 360, STEP))
        return {
            "places": degrees_of_tokens(),
            "weights": weights,
            "buckets": buckets.double(),
            "order": buckets.argsort(dim=-1, stable=True).double()[..., None, :],
            "circle": hashed(circle[None], rotations)[0].double(),  # (draws, rounds, points)
            "kept": kept_share(weights, buckets),
            "chance": chance(n_buckets),
            "curve": list(CURVE),
            "query": QUERY,
            "key": KEY,
        }

    def still(frame: Frame) -> Picture:
        angle, draw, chunk = 2, 0, 8
        buckets = frame["buckets"][angle, draw, :1]  # of one round
        seen = pairs_seen(buckets, chunk)[0]
        dense, kept = frame["weights"][angle], frame["weights"][angle] * seen
        share = kept[QUERY].sum()
        order = buckets[0].argsort(stable=True)
        of = [f"{name} ({bucket:.0f})" for name, bucket in zip(names(), buckets[0], strict=True)]
        dense, kept = (weights[order][:, order] for weights in (dense, kept))
        return plot_matrices(
            {"all pairs; row: token (bucket)": dense, "the pairs that are computed": kept},
            rows=[of[i] for i in order],
            columns=[names()[i] for i in order],
            signed=False,
            numbers=False,
            alt="Two maps of sixteen tokens, sorted by bucket: a row for each query and its bucket "
            "and a column for each key. Left the weights over all pairs, right those that are left "
            f"where each token sees its own bucket alone, of 8, in chunks of {chunk}: blocks along "
            f"the diagonal, {int(seen.sum()) - SEQ} of {SEQ * (SEQ - 1)} pairs. The query Q keeps "
            f"{share:.2f} of its weight.",
        )

    controls = {
        "angle": SelectionSlider(
            options=[(f"{angle}°", angle) for angle in ANGLES], value=30, description="angle"
        ),
        "n_buckets": SelectionSlider(options=N_BUCKETS, value=8, description="n_buckets"),
        "rounds": SelectionSlider(options=ROUNDS, value=1, description="rounds"),
        "chunk": SelectionSlider(options=CHUNKS, value=8, description="chunk_length"),
        "draw": SelectionSlider(options=range(1, DRAWS + 1), value=1, description="draw"),
    }
    return explorer("buckets", "Buckets, chunks and pairs", controls, frame, still, reads=None)


def names() -> list[str]:
    return ["Q" if i == QUERY else "K" if i == KEY else str(i) for i in range(SEQ)]


def degrees_of_tokens() -> Tensor:
    """Where each token points, (angles, seq), counted anticlockwise from the right."""
    rows = []
    for angle in ANGLES:
        others = iter(OTHERS)
        at = {QUERY: 90, KEY: 90 - angle}
        rows.append([at[i] if i in at else next(others) for i in range(SEQ)])
    return torch.tensor(rows).double()


def directions(degrees: Tensor) -> Tensor:
    """Vectors of length 1, (…, 2)."""
    turn = torch.deg2rad(degrees.double())
    return torch.stack([turn.cos(), turn.sin()], dim=-1)


def token_vectors() -> Tensor:
    """The queries, (angles, seq, 2)."""
    return SCALE * directions(degrees_of_tokens())


def dense_weights(tokens: Tensor) -> Tensor:
    """The weights of the queries with keys of length 1, over all pairs but a token with itself."""
    scores = tokens @ F.normalize(tokens, dim=-1).mT
    return scores.masked_fill(torch.eye(SEQ).bool(), -math.inf).softmax(-1)


def hashed(x: Tensor, rotations: Tensor) -> Tensor:
    """(batch, seq, 2) -> (batch, draws, rounds, seq)."""
    return lsh_buckets(x[:, None], rotations)[:, 0].unflatten(1, (DRAWS, -1))


def pairs_seen(buckets: Tensor, chunk: int) -> Tensor:
    """(…, seq) -> (…, query, key): one bucket, and the query's chunk or the previous one."""
    chunks = buckets.argsort(dim=-1, stable=True).argsort(dim=-1) // chunk
    back = chunks[..., :, None] - chunks[..., None, :]
    return (buckets[..., :, None] == buckets[..., None, :]) & ((back == 0) | (back == 1))


def kept_share(weights: Tensor, buckets: Tensor) -> Tensor:
    """What each setting keeps of the query's weight, (angles, draws, rounds, chunks)."""
    kept = []
    for chunk in CHUNKS:
        seen = pairs_seen(buckets, chunk)[..., QUERY, :]  # (angles, draws, rounds, key)
        by_rounds = torch.stack([seen[:, :, :n].any(2) for n in ROUNDS], dim=2)
        kept.append((by_rounds * weights[:, None, None, QUERY]).sum(-1))
    return torch.stack(kept, dim=-1)


def chance(n_buckets: int) -> Tensor:
    """In what share of TRIES a pair meets in some round, (rounds, curve)."""
    generator = torch.Generator().manual_seed(0)
    shape = (TRIES * max(ROUNDS), 2, n_buckets // 2)
    rotations = torch.randn(shape, generator=generator).double()
    x = directions(torch.tensor([0, *CURVE]))
    buckets = largest_product(x @ rotations).unflatten(0, (TRIES, -1))
    met = buckets[..., :1] == buckets[..., 1:]  # (tries, rounds, curve)
    return torch.stack([met[:, :n].any(1).double().mean(0) for n in ROUNDS])
