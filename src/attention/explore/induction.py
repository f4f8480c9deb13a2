"""Induction at work: a sequence, the two heads that find what followed last time, the answer."""

from ipywidgets import Dropdown, SelectionSlider

from attention.explore.explorer import Explorer, Frame, Reads, explorer
from attention.plots import Picture, plot_heads
from attention.trained.induction import (
    LENGTH,
    SEEDS,
    SYMBOLS,
    encode,
    load_induction,
    measured_induction,
)

READS = Reads("sequence", "your own sequence", "thecatsawthec", list(SYMBOLS), LENGTH)


def induction_explorer(
    sequence: str = "kx3plumbertwzq05d4plumberfvhcnj1", query: int = 20
) -> Explorer:
    """Explore how two heads, one after the other, find what followed a token last time.

    A text field takes a sequence of the reader's own, and every head can be switched off.

    Args:
        sequence: what it starts with: at most 32 of the symbols a to z and 0 to 5.
        query: the place of the token that asks, where the slider starts.

    Returns:
        The explorer, with controls ``layers`` and ``query``.

    Raises:
        ValueError: the sequence holds another symbol, is too long, or has no such place.
    """
    token_ids, tokens = encode(sequence), list(sequence)
    if not 0 <= query < len(tokens):
        raise ValueError(
            f"query={query} must be a place of the sequence, 0 to {len(tokens) - 1}; "
            f"{sequence!r} has {len(tokens)} tokens"
        )

    def frame(layers: int) -> Frame:
        logits, weights = load_induction(layers).requires_grad_(False).double()(token_ids)
        return {
            "tokens": tokens,
            **{f"layer{i}": each[0] for i, each in enumerate(weights)},
            "shares": logits[0].softmax(-1),
            "vocabulary": list(SYMBOLS),
            "accuracy": measured_induction(layers),
        }

    def still(frame: Frame) -> Picture:
        return plot_heads(
            tokens,
            query,
            frame["layer1"],
            alt=f"The sequence {sequence!r}. A line for each head of the second layer goes from "
            f"token {query}, {tokens[query]!r}, to what it looks at, as wide as the weight: both "
            "look at the token that followed it last time.",
        )

    controls = {
        "layers": Dropdown(options=(2, 1), value=2, description="layers"),
        "query": SelectionSlider(options=range(LENGTH), value=query, description="query"),
    }
    models = {str(n): {"n_heads": 2, **load_induction(n).state_dict()} for n in SEEDS}
    return explorer(
        "induction", controls, frame, still, models=models, modules=["transformer"], reads=READS
    )
