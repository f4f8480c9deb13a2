"""How fast each mechanism was, by situation, length of the text and machine: the stored runs."""

import torch
from ipywidgets import Dropdown, SelectionSlider
from matplotlib.figure import Figure

from attention.cost.situations import ALL_PAIRS, load_situations
from attention.explore.explorer import Explorer, Frame, explorer
from attention.plots import Picture

SITUATIONS = ["training", "prefill", "decode"]
MACHINES = {"GPU": "cuda", "processor": "cpu"}
LENGTHS = [1024, 4096, 16384, 65536]


def situations_explorer() -> Explorer:
    """Explore each mechanism's speed, in multiples of that of torch's kernel over all pairs.

    Returns:
        The explorer, with controls ``situation``, ``machine`` and ``n``, the number of tokens.
    """
    runs = {machine: load_situations(device) for machine, device in MACHINES.items()}
    timed = [times for run in runs.values() for of in run.seconds.values() for times in of.values()]
    every = set().union(*timed)

    def frame(situation: str, machine: str, n: int) -> Frame:
        run = runs[machine]
        if n not in run.seconds[situation]:
            raise ValueError(
                f"{situation} with n={n:,} was not timed; choose at most "
                f"{max(run.seconds[situation]):,}"
            )
        times = run.times_as_quick(situation, n)
        del times[ALL_PAIRS]
        return {
            "names": list(times),
            # (mechanisms, 1) each
            "medians": torch.tensor([[each.median] for each in times.values()]),
            "least": torch.tensor([[each.least] for each in times.values()]),
            "most": torch.tensor([[each.most] for each in times.values()]),
            "untimed": sorted(every - {*times, ALL_PAIRS}),
            "measured": run.setting,
        }

    def still(frame: Frame) -> Picture:
        figure = Figure(figsize=(6, 3))
        panel = figure.subplots()
        medians, least, most = (frame[name][:, 0] for name in ("medians", "least", "most"))
        panel.hlines(frame["names"], least, most, color="#888888")
        panel.plot(medians, frame["names"], "o", color="#1f5fbf")
        panel.axvline(1, color="#888888", linestyle="--")
        panel.set_xscale("log")
        panel.set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
        panel.set_xlabel("times as fast as all pairs in torch’s kernel")
        panel.invert_yaxis()
        panel.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        alt = (
            "Times as fast as all pairs, prefill of 65,536 tokens on a GPU, a dot for each "
            "mechanism on a scale of powers of ten. The window is faster than all pairs, few KV "
            "heads and the strided pattern are about as fast, LSH takes about three times as long, "
            "linear attention and the delta rule over twenty times."
        )
        return Picture(figure, alt, {"times as fast": frame["medians"]})

    controls = {
        "situation": Dropdown(options=SITUATIONS, value="prefill", description="situation"),
        "machine": Dropdown(options=list(MACHINES), value="GPU", description="machine"),
        "n": SelectionSlider(options=LENGTHS, value=65536, description="n"),
    }
    return explorer("situations", "Three situations, timed", controls, frame, still, reads=None)
