"""The controls that explorers share, and what an index of a control stands for."""

from collections.abc import Sequence
from typing import Any

from ipywidgets import Checkbox, Dropdown, SelectionSlider, Widget

# Models were trained with these; 3 heads divide only one of the widths.
D_MODELS = (8, 12, 16)
N_HEADS = (1, 2, 3, 4, 8)


def sentence_menu(sentences: Sequence[str]) -> Dropdown:
    """Choose one of the sentences; the control's value is its index."""
    names = [(text, i) for i, text in enumerate(sentences)]
    return Dropdown(options=names, value=0, description="sentence")


def size_sliders(
    d_models: Sequence[int], n_heads: Sequence[int], *, start: tuple[int, int] = (8, 2)
) -> dict[str, SelectionSlider]:
    """Make the d_model and n_heads sliders, at ``start`` or else at the first pair that is allowed.

    Raises ValueError where no count of ``n_heads`` divides a width of ``d_models``.
    """
    allowed = [(d, n) for d in d_models for n in n_heads if n > 0 and d % n == 0]
    if not allowed:
        raise ValueError(
            f"no count of n_heads={tuple(n_heads)} divides a width of d_models={tuple(d_models)}; "
            "1 divides every width"
        )
    width, count = start if start in allowed else allowed[0]
    return {
        "d_model": SelectionSlider(options=d_models, value=width, description="d_model"),
        "n_heads": SelectionSlider(options=n_heads, value=count, description="n_heads"),
    }


def choices(control: Widget) -> list[tuple[str, Any]]:
    """The (label, value) pairs a control can take, in the order of its index."""
    if isinstance(control, Checkbox):
        return [("off", False), ("on", True)]
    labels_and_values = zip(control._options_labels, control._options_values, strict=True)
    return [(str(label), value) for label, value in labels_and_values]


def position(control: Widget) -> int:
    """The position of a control: the index of its value among its choices."""
    return int(control.value) if isinstance(control, Checkbox) else control.index
