"""What a layer keeps of the pairs that it has read: a cache that grows, or a state that mixes."""

import torch
import torch.nn.functional as F
from ipywidgets import Dropdown, SelectionSlider
from torch import Tensor

from attention.explore.explorer import Explorer, Frame, explorer
from attention.heads import split_heads
from attention.linear.linear_transformer import linear_attention_step
from attention.plots import Picture, plot_matrices
from attention.trained.recall import (
    LONGEST,
    STORED,
    Pairs,
    RecallModel,
    cache_size,
    load,
    measured,
    new_pairs,
)

LENGTHS = (1, 2, 4, 8, 16, 24, 32, 48, LONGEST)  # pairs that were written
HEAD = 0


def memory_explorer() -> Explorer:
    """Explore what a layer keeps of pairs that were written, and what it still answers.

    Each key is asked alone, after all pairs. Both layers were trained to answer.

    Returns:
        The explorer, with controls ``mechanism`` and ``pairs``.
    """
    pairs = new_pairs(LONGEST, 1)

    def frame(mechanism: str) -> Frame:
        model = load(mechanism).requires_grad_(False).double()
        key, value = key_and_value(model, pairs)
        kept = torch.cat((key, value), dim=-1)  # (pair, 2 · d_key)
        of_measured = measured(mechanism)
        return {
            "keys": pairs.keys[0].tolist(),
            "values": pairs.values[0].tolist(),
            "lengths": LENGTHS,
            "kept": states(key, value) if mechanism == "linear" else kept,
            "sizes": [cache_size(mechanism, n) for n in LENGTHS],
            "answers": torch.stack([answers(model, pairs, n) for n in LENGTHS]).double(),
            "measured": list(of_measured),
            "accuracy": torch.tensor([[by_seed[0] for by_seed in of_measured.values()]]).double(),
        }

    def still(frame: Frame) -> Picture:
        n = controls["pairs"].value
        return plot_matrices(
            {f"what head {HEAD} keeps of {n} pairs": frame["kept"][:n]},
            rows=[f"pair {i}" for i in range(n)],
            numbers=False,
            alt=f"The cache of one head of softmax attention after {n} pairs: a row for each pair, "
            "with the 16 numbers of its key and the 16 of its value.",
        )

    controls = {
        "mechanism": Dropdown(options=STORED, description="mechanism"),
        "pairs": SelectionSlider(options=LENGTHS, value=8, description="pairs"),
    }
    return explorer("memory", "What a layer keeps", controls, frame, still, reads=None)


def key_and_value(model: RecallModel, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """The keys and values of one head for every pair, (pair, d_key) each."""
    x, layer = model.embed(pairs.keys, pairs.values, pairs.keys[:, :0]), model.attention
    key, value = (split_heads(w(x), layer.n_heads)[0, HEAD] for w in (layer.w_k, layer.w_v))
    return key, value


def states(key: Tensor, value: Tensor) -> Tensor:
    """The state of linear attention after each of `LENGTHS` pairs, (length, d_key, d_value + 1)."""
    state, after = None, []
    for k, v in zip(key[None, None].split(1, 2), value[None, None].split(1, 2), strict=True):
        _, state = linear_attention_step(k, k, v, state)
        after.append(state[0, 0])
    return torch.stack([after[n - 1] for n in LENGTHS])


def answers(model: RecallModel, pairs: Pairs, n: int) -> Tensor:
    """The answer to each of the first n keys, asked alone after n pairs, sixteen in a row.

    −1 stands for the pairs that are not written yet: (row, 16).
    """
    keys, values = (each[:, :n].expand(n, -1) for each in (pairs.keys, pairs.values))
    logits = model(keys, values, pairs.keys[0, :n, None])[:, 0]
    return F.pad(logits.argmax(-1), (0, LONGEST - n), value=-1).view(-1, 16)
