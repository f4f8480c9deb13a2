"""Reads the frames of an explorer back."""

import numpy as np
import torch

from attention.explore.explorer import Explorer


def options(explorer: Explorer, name: str) -> list[str]:
    return next(c["options"] for c in explorer.view.controls if c["name"] == name)


def frame(explorer: Explorer, **labels: object) -> dict:
    """The frame where the controls have these labels, each of its tensors in double precision."""
    chosen = [control for control in explorer.view.controls if control["frame"]]
    places = [str(c["options"].index(str(labels[c["name"]]))) for c in chosen]
    held, numbers = dict(explorer.view.frames[",".join(places)]), explorer.view.numbers
    for name, place in held.items():
        if isinstance(place, dict) and place.keys() == {"at", "shape"}:
            size = int(np.prod(place["shape"]))
            flat = np.frombuffer(numbers, "<f4", size, 4 * place["at"]).reshape(place["shape"])
            held[name] = torch.tensor(flat, dtype=torch.float64)
    return held
