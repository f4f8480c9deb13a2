"""What every explorer is made of: controls, one view, and all frames, computed beforehand."""

import inspect
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import numpy as np
import traitlets
from ipywidgets import Box, Checkbox, VBox, Widget, jslink
from torch import Tensor

from attention.explore.controls import choices, position
from attention.explore.modules import bundle
from attention.plots import Picture
from attention.trained import who_and_whom
from attention.trained.who_and_whom import LONGEST, SIZES, VOCABULARY, WhoAndWhom

HERE = Path(__file__).parent
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

Frame = Mapping[str, Any]


class Reads(NamedTuple):
    """What a reader may write, for a view to compute.

    Attributes:
        kind: "sentence", "date" …: what is written in one view is carried over to all views of its
            kind.
        label: the label of the text field.
        placeholder: what the field shows while it is empty.
        vocabulary: the tokens, in the order of their ids. Without an <unk>, other tokens are
            refused.
        longest: how many tokens the model reads at most.
        examples: texts to try; the view's own unless given.
        read_as: words that the model never met, and those that it reads instead of them.
    """

    kind: str
    label: str
    placeholder: str
    vocabulary: list[str]
    longest: int
    examples: list[str] | None = None
    read_as: dict[str, str] | None = None


# The model learnt its verbs in the past tense; people type them in the present.
PRESENT = {
    "chases": "chased",
    "follows": "followed",
    "finds": "found",
    "sees": "saw",
    "takes": "took",
    "draws": "drew",
    "knows": "knew",
    "bites": "bit",
    "hides": "hid",
    "sings": "sing",
    "sleeps": "sleep",
    "runs": "run",
}
SENTENCE = Reads(
    "sentence",
    "your own sentence",
    "the old king drew a small boat",
    list(VOCABULARY.tokens),
    LONGEST,
    read_as=PRESENT,
)


class FrameView(anywidget.AnyWidget):
    """A picture of one frame: it holds all frames, and its control traits say which to draw."""

    title = traitlets.Unicode().tag(sync=True)
    controls = traitlets.List().tag(sync=True)
    frames = traitlets.Dict().tag(sync=True)
    models = traitlets.Dict().tag(sync=True)
    reads = traitlets.Dict(None, allow_none=True).tag(sync=True)
    numbers = traitlets.Bytes().tag(sync=True)
    weights = traitlets.Bytes().tag(sync=True)


class Explorer(VBox):
    """Controls above a view; a static picture stands in where widgets do not run."""

    # ipywidgets 7 displays through this method and would leave the picture out.
    _ipython_display_ = None

    def __init__(self, name: str, controls: Mapping[str, Widget], view: FrameView, still: Picture):
        # A single option is not a choice, and a slider that cannot move would be a defect.
        shown = [each for each in controls.values() if len(getattr(each, "options", "two")) > 1]
        super().__init__([Box(shown).add_class("explorer-controls"), view])
        self.add_class("explorer")
        self.name, self.controls, self.view, self.still = name, dict(controls), view, still

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name} {getattr(control, 'label', None) or control.value}"
            for name, control in self.controls.items()
        )
        return f"{self.name}: {len(self.view.frames)} frames, first at {sizes}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data, metadata = self.still._repr_mimebundle_()
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {**data, "text/plain": repr(self), WIDGET_VIEW: view}, metadata


def explorer(
    view: str,
    title: str,
    controls: Mapping[str, Widget],
    frame: Callable[..., Frame],
    still: Callable[[Frame], Picture],
    *,
    models: Mapping[str, Frame] | None = None,
    reads: Reads | None = SENTENCE,
) -> Explorer:
    """Tie controls to a view that can draw every frame they reach, without asking the kernel.

    Args:
        view: name of the ES module that draws, ``<view>.js`` in this folder.
        title: what a screen reader calls the figure, in a few words that no other figure has.
        controls: the widgets by name: ``SelectionSlider``, ``Dropdown`` or ``Checkbox``. Those that
            ``frame`` takes as an argument choose the frame; the others are read by the view alone.
        frame: computes one frame with the functions of ``attention``. Tensors in it travel as
            binary numbers, everything else as JSON. A ``ValueError`` that it raises is shown
            instead of the picture, in its own words.
        still: draws the first frame, the one that the controls start at, as a static picture.
        models: the weights with which the page computes what a reader writes, by the name that the
            view's ``model`` gives them; unless given, the stored ones of each d_model and n_heads,
            under names such as "8,2".
        reads: what a reader may write; None where there is nothing to write.

    Returns:
        The explorer: display it, or read its ``controls`` and ``view``.

    """
    chosen = [name for name in inspect.signature(frame).parameters if name in controls]
    options = {name: choices(control) for name, control in controls.items()}
    packed, numbers = Packer("<f4"), {}
    for index in itertools.product(*(range(len(options[name])) for name in chosen)):
        values = {name: options[name][at][1] for name, at in zip(chosen, index, strict=True)}
        try:
            numbers[",".join(map(str, index))] = packed.add(frame(**values))
        except ValueError as error:
            numbers[",".join(map(str, index))] = {"error": str(error)}

    if reads is None:
        models = {}
    elif models is None:
        widths, counts = (
            [value for _, value in options.get(name, [("2", 2)])] for name in ("d_model", "n_heads")
        )
        pairs = [pair for pair in itertools.product(widths, counts) if pair in SIZES]
        models = {
            f"{d_model},{n_heads}": page_weights(who_and_whom.load(d_model, n_heads))
            for d_model, n_heads in pairs
        }
    weights = Packer("<f2")  # trained weights are stored in half precision
    packed_models = {name: weights.add(model) for name, model in models.items()}

    traits = {name: traitlets.Int(0).tag(sync=True) for name in controls}
    style = (HERE / "explorer.css").read_text("utf-8")
    parts = {**traits, "_esm": bundle(view), "_css": style, "__module__": __name__}
    kind = type(f"{view.title()}View", (FrameView,), parts)
    picture = kind(
        title=title,
        controls=[
            {
                "name": name,
                "options": [label for label, _ in options[name]],
                "frame": name in chosen,
            }
            for name in controls
        ],
        frames=numbers,
        models=packed_models,
        reads=None if reads is None else reads._asdict(),
        numbers=packed.numbers,
        weights=weights.numbers,
        **{name: position(control) for name, control in controls.items()},
    )
    for name, control in controls.items():
        jslink((control, "value" if isinstance(control, Checkbox) else "index"), (picture, name))

    start = {name: options[name][position(controls[name])][1] for name in chosen}
    return Explorer(f"{view}_explorer", controls, picture, still(frame(**start)))


def page_weights(model: WhoAndWhom, *, reads_out: bool = False) -> Frame:
    """What the page needs of a trained model to compute a sentence that a reader writes.

    Args:
        model: the trained model.
        reads_out: whether its answers are shown too, which needs the weights of both read-outs.
    """
    layers = {name: getattr(model.attention, f"w_{name}") for name in "qkvo"}
    if reads_out:
        layers |= {"who": model.to_who, "whom": model.to_whom}
    return (
        {"n_heads": model.attention.n_heads, "table": model.embedding.table.weight}
        | {f"w_{name}": layer.weight for name, layer in layers.items()}
        | {f"b_{name}": layer.bias for name, layer in layers.items()}
    )


class Packer:
    """Lays tensors end to end in one buffer; equal tensors are stored once.

    Args:
        dtype: how a number is stored. Frames are computed in float64 and rounded once, here, so
            that the stored digits do not depend on the order in which a machine adds.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.numbers = b""
        self._places: dict[tuple, int] = {}

    def add(self, frame: Frame) -> dict[str, Any]:
        """One frame as JSON, its tensors replaced by where they lie in the buffer."""
        return {
            name: self._place(value) if isinstance(value, Tensor) else value
            for name, value in frame.items()
        }

    def _place(self, tensor: Tensor) -> dict[str, Any]:
        array = tensor.detach().contiguous().numpy().astype(self.dtype)
        data = (array + self.dtype.type(0)).tobytes()  # + 0 turns -0.0 into 0.0
        key = (data, array.shape)
        if key not in self._places:
            self._places[key] = len(self.numbers) // self.dtype.itemsize
            self.numbers += data
        return {"at": self._places[key], "shape": list(array.shape)}
