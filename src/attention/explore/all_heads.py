"""All heads of a published model at once, each scored by a rule, and one of them opened."""

from collections.abc import Sequence

import torch
from ipywidgets import Checkbox, Dropdown, SelectionSlider

from attention.explore.explorer import Explorer, Frame, explorer
from attention.plots import Picture, plot_matrices
from attention.pretrained.heads import best
from attention.pretrained.loading import load
from attention.pretrained.maps import map_of
from attention.pretrained.measured import load_measured
from attention.pretrained.sentences import OPENING

BUTTONS = 6  # how many heads of a rule have a button
MEASURED = [  # what each rule is measured on
    "on four texts",
    "on sentences that part subject and verb",
    "on four texts",
    "on random tokens that repeat",
    "on four texts",
]
OPENED = (16, 0)  # the head that is open at the start


def all_heads_explorer(texts: Sequence[str] | None = None) -> Explorer:
    """Explore the 270 heads of SmolLM2-135M: what each looks at, by which rule, and what it costs.

    Args:
        texts: the reader's own, each shorter than about twenty tokens; the model is loaded and
            reads them. If none are given, the stored ones are shown.

    Returns:
        The explorer, with controls ``sentence``, ``rule``, ``layer``, ``head`` and
        ``leave_out_the_first_token``.
    """
    if texts is None:
        maps = load_measured("maps")
    else:
        smol = load()
        maps = {text: map_of(smol.model, smol.tokenizer, text) for text in texts}
    heads, removals = load_measured("heads"), load_measured("removals")
    whole = removals.pop("none")
    copied = torch.tensor([each["copied"] for each in removals.values()])
    rise = torch.tensor([each["loss"] for each in removals.values()]) - torch.tensor(whole["loss"])
    verbs = torch.tensor([heads["verbs"][kind]["subject"] for kind in ("place", "relative")])
    rules = {
        "the previous token": torch.tensor(heads["rules"]["previous"]),
        "the subject": verbs.mean(0),
        "the first token": torch.tensor(heads["rules"]["first"]),
        "what followed last time": torch.tensor(heads["rules"]["induction"]),
    }
    cost = rise.mean(1).reshape_as(verbs[0])
    scores = torch.stack([*rules.values(), cost])  # (rule, layers, heads)
    n_layers, n_heads = cost.shape
    names = [*rules, "what it costs to switch it off"]

    def frame(sentence: str) -> Frame:
        held = maps[sentence]
        return {
            "tokens": held["tokens"],
            "weights": {"levels": held["levels"], "shape": held["shape"]},
            "rules": names,
            "measured": MEASURED,
            "scores": scores,
            "copied": copied.reshape_as(cost),
            "whole": whole["copied"],
            "best": BUTTONS,
        }

    def still(_: Frame) -> Picture:
        titles, told = [], []
        for name, of_rule in rules.items():
            strongest = best(of_rule, 3)
            scored = [f"{layer}.{head} {of_rule[layer, head]:.2f}" for layer, head in strongest]
            costs = ", ".join(f"{cost[each]:.3f}" for each in strongest)
            titles.append(f"{name}: {', '.join(scored)}")
            told.append(f"{titles[-1]} (without each of them the loss changes by {costs})")
        return plot_matrices(
            {title: of_rule.T for title, of_rule in zip(titles, rules.values(), strict=True)},
            rows=[str(head) for head in range(n_heads)],
            columns=[str(layer) if layer % 5 == 0 else "" for layer in range(n_layers)],
            alt=f"The score of each of {n_layers * n_heads} heads by four rules, a row for each "
            "head of a layer and a column for each layer, with the three strongest: "
            f"{'; '.join(told)}",
            signed=False,
            per_line=1,
            numbers=False,
        )

    return explorer(
        "all_heads",
        f"{n_layers * n_heads} heads",
        {
            "sentence": Dropdown(
                # The opening that they share would fill a narrow menu.
                options=[(text.removeprefix(f"{OPENING} "), text) for text in maps],
                description="sentence",
            ),
            "rule": Dropdown(options=names, description="rule"),
            "layer": SelectionSlider(options=range(n_layers), value=OPENED[0], description="layer"),
            "head": SelectionSlider(options=range(n_heads), value=OPENED[1], description="head"),
            "leave_out_the_first_token": Checkbox(
                value=False, description="leave out the first token"
            ),
        },
        frame,
        still,
        reads=None,
    )
