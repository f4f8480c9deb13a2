"""A published model as it writes: token by token, with or without a mistake in its attention."""

from collections.abc import Iterable
from statistics import fmean

import torch
from ipywidgets import Dropdown, SelectionSlider

from attention.explore.explorer import Explorer, Frame, explorer
from attention.plots import Picture, plot_matrices
from attention.pretrained.measured import load_measured


def next_tokens_explorer(mistakes: Iterable[str] | None = None) -> Explorer:
    """Explore what SmolLM2-135M writes, and which tokens it might have written instead.

    Args:
        mistakes: names of `attention.pretrained.mistakes.MISTAKES`, for a menu of what is wrong in
            all layers of the model; unless given, there is a slider of temperatures for the model
            as it is.

    Returns:
        The explorer, with controls ``prompt``, ``temperature`` or ``mistake``, and ``step``.
    """
    stored = load_measured("next_tokens")
    prompts = [("".join(each["read"]), i) for i, each in enumerate(stored)]
    temperatures = stored[0]["temperatures"]
    steps = range(1, len(stored[0]["written"]) + 1)
    controls = {"prompt": Dropdown(options=prompts, value=0, description="prompt")}

    def shown(written: dict, temperature: int) -> Frame:
        return {
            "read": written["read"],
            "written": written["written"],
            "likeliest": written["likeliest"],
            "shares": torch.tensor(written["shares"][temperature])[..., None],  # (step, token, 1)
        }

    if mistakes is None:
        controls["temperature"] = SelectionSlider(
            options=temperatures, value=1.0, description="temperature"
        )

        def frame(prompt: int, temperature: float) -> Frame:
            return shown(stored[prompt], temperatures.index(temperature))
    else:
        measured, names = load_measured("mistakes"), list(mistakes)
        written = measured["written"]
        texts = [measured["prices"][name].values() for name in names]
        # (mistake, 1): the mean loss over the texts
        losses = torch.tensor([[fmean(text["loss"] for text in each)] for each in texts])
        controls["mistake"] = Dropdown(options=names, description="mistake")

        def frame(prompt: int, mistake: str) -> Frame:
            return {**shown(written[mistake][prompt], 0), "names": names, "losses": losses}

    controls["step"] = SelectionSlider(options=steps, value=1, description="step")

    def still(frame: Frame) -> Picture:
        first = [told(token) for token in frame["likeliest"][0]]
        of = zip(first, frame["shares"][0, :, 0].tolist(), strict=True)
        shares = [f"{token.strip()} {share:.2f}" for token, share in of]
        return plot_matrices(
            {f"what may follow “{''.join(frame['read'])}”": frame["shares"][0].T},
            rows=["next"],
            columns=first,
            alt=f"The likeliest tokens after “{''.join(frame['read'])}” and their probabilities: "
            f"{', '.join(shares)}. In the end stands: "
            f"{told(''.join(frame['read'] + frame['written']))}",
            signed=False,
        )

    return explorer(
        "next_tokens",
        "What the model writes" if mistakes is None else "What it writes with a mistake",
        controls,
        frame,
        still,
        reads=None,
    )


def told(token: str) -> str:
    """A token as it is shown, with a line break as a sign."""
    return token.replace("\n", "⏎")
