"""The model as it learns: its loss, its heads and its answers after each stored step."""

import torch
from ipywidgets import Dropdown, SelectionSlider

from attention.explore.explorer import Explorer, Frame, explorer, page_weights
from attention.explore.trained_example import answered, tokens_with_verb
from attention.plots import Picture, plot_matrices
from attention.trained.who_and_whom.checkpoints import (
    SEEDS,
    STEPS,
    load_checkpoint,
    load_losses,
)

SHOWN = (100, 200, 400, 600)  # in the static picture


def training_explorer(sentence: str = "a dog chased the red ball") -> Explorer:
    """Explore how the model learns: the loss, what each head looks at, and a sentence's answers.

    A text field takes a sentence of the reader's own.

    Args:
        sentence: what it starts with; its words are in the model's vocabulary, a verb among them.

    Returns:
        The explorer, with controls ``step`` and ``seed``.

    Raises:
        ValueError: the sentence has no verb that the model knows.
    """
    tokens = tokens_with_verb(sentence)
    checkpoints = {(seed, step): load_checkpoint(seed, step) for seed in SEEDS for step in STEPS}
    losses = {seed: load_losses(seed) for seed in SEEDS}

    def frame(step: int, seed: int) -> Frame:
        model, right, roles = checkpoints[seed, step]
        return {
            **answered(tokens, model),
            "right": right.both,
            "roles": torch.tensor(roles),
            "losses": losses[seed],
            "steps": list(STEPS),
            "rights": [checkpoints[seed, step].right.both for step in STEPS],
        }

    def still(frame: Frame) -> Picture:
        on_the_way = {step: answered(tokens, checkpoints[SEEDS[0], step].model) for step in SHOWN}
        return plot_matrices(
            {f"step {step}": each["weights"][:, each["verb"]] for step, each in on_the_way.items()},
            rows=[f"head {i}" for i in range(len(frame["weights"]))],
            columns=tokens,
            signed=False,
            alt=f"What each head gives from the verb to the words of {sentence!r} at four steps of "
            f"training, seed {SEEDS[0]}, a row for each head: spread out first, then one word for "
            "each head.",
        )

    controls = {
        "step": SelectionSlider(options=STEPS, value=300, description="step"),
        "seed": Dropdown(options=SEEDS, value=SEEDS[0], description="seed"),
    }
    models = {
        f"{seed},{step}": page_weights(each.model, reads_out=True)
        for (seed, step), each in checkpoints.items()
    }
    return explorer("training", "The model as it learns", controls, frame, still, models=models)
