"""Induction at work: a sequence, the two heads that find what followed last time, the answer."""

import torch
from ipywidgets import Dropdown, SelectionSlider
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attention.explore.explorer import Explorer, Frame, Reads, explorer
from attention.plots import LINES, Picture
from attention.trained import induction
from attention.trained.induction import LAYERS, LENGTH, SYMBOLS, encode

FAINT = 0.1  # a weight below it is not drawn
READS = Reads("sequence", "your own sequence", "thecatsawthec", list(SYMBOLS), LENGTH)


def induction_explorer(
    sequence: str = "kx3plumbertwzq05d4plumberfvhcnj1", query: int = 20
) -> Explorer:
    """Explore how two heads, one after the other, find what followed a token last time.

    A text field takes a sequence of the reader's own, and every head can be switched off.

    Args:
        sequence: what it starts with: at most 32 of the symbols a to z and 0 to 5.
        query: the position of the token that asks, where the slider starts.

    Returns:
        The explorer, with controls ``layers`` and ``query``.

    Raises:
        ValueError: the sequence holds another symbol, is too long, or has no such position.
    """
    token_ids, tokens = encode(sequence), list(sequence)
    if not 0 <= query < len(tokens):
        raise ValueError(
            f"query={query} must be a position of the sequence, 0 to {len(tokens) - 1}; "
            f"{sequence!r} has {len(tokens)} tokens"
        )

    def frame(layers: int) -> Frame:
        logits, weights = induction.load(layers).requires_grad_(False).double()(token_ids)
        return {
            "tokens": tokens,
            **{f"layer{i}": each[0] for i, each in enumerate(weights)},
            "shares": logits[0].softmax(-1),
            "vocabulary": list(SYMBOLS),
            "accuracy": induction.measured(layers),
        }

    def still(frame: Frame) -> Picture:
        return draw_way(tokens, query, frame, sequence)

    controls = {
        "layers": Dropdown(options=(2, 1), value=2, description="layers"),
        "query": SelectionSlider(options=range(LENGTH), value=query, description="query"),
    }
    models = {str(n): {"n_heads": 2, **induction.load(n).state_dict()} for n in LAYERS}
    return explorer(
        "induction", "What followed last time", controls, frame, still, models=models, reads=READS
    )


def draw_way(tokens: list[str], query: int, frame: Frame, sequence: str) -> Picture:
    """Draw the way through the heads as the view does, with the answer above it."""
    looks, brought = frame["layer1"][:, query], frame["layer0"]
    found = int(looks.sum(0).argmax())
    before = int(brought[:, found].amax(0).argmax())
    share, answer = frame["shares"][query].max(0)
    said = f"after {tokens[query]!r}, position {query}: {SYMBOLS[answer]} {share:.2f}"

    figure = Figure(figsize=(7, 2.6))
    panel = figure.subplots()
    for i, token in enumerate(tokens):
        panel.text(i, 0, token, ha="center", va="center", fontsize=12, fontweight="bold")
    draw_arcs(panel, looks, query, layer=1, side=1)
    draw_arcs(panel, brought[:, found], found, layer=0, side=-1)
    panel.set_title(said, fontsize=11)
    panel.set_axis_off()
    figure.tight_layout()
    alt = (
        f"The sequence {sequence!r}, and the answer {said}. Above the letters a line for each head "
        f"of layer 2 goes from token {query}, {tokens[query]!r}, to what it looks at, as wide as "
        f"the weight: most goes to token {found}, {tokens[found]!r}. Below them lines of layer 1 "
        f"go on from there; the widest ends at token {before}, {tokens[before]!r}."
    )
    return Picture(figure, alt, {"layer 2": looks, "layer 1": brought[:, found]})


def draw_arcs(
    panel: Axes, looks: Float[Tensor, "heads key"], query: int, layer: int, side: int
) -> None:
    """Draw what the heads of a layer look at from one position, above the letters or below them."""
    angle = torch.linspace(0, torch.pi, 40)
    for head, row in enumerate(looks):
        colour, dash = LINES[2 * layer + head]
        for key in (row >= FAINT).nonzero()[:, 0].tolist():
            high = 0.5 + 0.15 * (query - key) + 0.6 * head
            x = (query + key) / 2 + (query - key) / 2 * angle.cos()
            y = side * (0.8 + high * angle.sin())
            panel.plot(x, y, dash, color=colour, linewidth=1 + 4 * row[key].item())
        label = f"head {layer + 1}.{head}: {row.max():.2f} on position {int(row.argmax())}"
        place = (query + 0.8, side * (1.4 + 1.1 * head))
        panel.text(*place, label, va="center", fontsize=9, color=colour)
