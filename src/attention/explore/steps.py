"""A drawing that moves where motion is the idea: a slider shows one step after another."""

from collections.abc import Mapping

from ipywidgets import SelectionSlider

from attention.drawings import Drawing
from attention.explore.explorer import Explorer, Frame, explorer


def steps_explorer(title: str, drawings: Mapping[str, Drawing]) -> Explorer:
    """Show drawings one after another.

    Args:
        title: what a screen reader calls the figure, in a few words that no other figure has.
        drawings: the drawings, by what the slider calls each step.

    Returns:
        The explorer, with the control ``step``.
    """

    def frame(step: str) -> Frame:
        drawing = drawings[step]
        return {"wide": drawing.wide, "narrow": drawing.narrow, "alt": drawing.alt}

    slider = SelectionSlider(options=list(drawings), description="step")
    return explorer(
        "steps", title, {"step": slider}, frame, lambda _: next(iter(drawings.values())), reads=None
    )
