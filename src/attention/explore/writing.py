"""The transformer as it writes a date, one sign at a time, and where each attention looks."""

import torch
from ipywidgets import Dropdown, SelectionSlider
from torch import Tensor

from attention.explore.explorer import Explorer, Frame, Reads, explorer
from attention.plots import Picture, plot_matrices
from attention.trained.dates import ANSWER, LETTERS, LONGEST, SIGN_NAMES, START, load

DATES = ("sunday, march the 4th 1973", "4 may 2031", "23 feb 1914")
ATTENTIONS = ("cross-attention", "decoder's self-attention", "encoder's self-attention")
READS = Reads("date", "your own date", "the 1st of may, 2024", list(LETTERS.tokens), LONGEST)


def writing_explorer() -> Explorer:
    """Explore how the trained transformer writes a date: what each step looks at, and how sure.

    A text field takes a date of the reader's own.

    Returns:
        The explorer, with controls ``sentence``, ``step``, ``head`` and ``attention``.
    """
    model = load("transformer")
    weights = {"n_heads": 4} | model.transformer.state_dict()
    whole = model.requires_grad_(False).double().transformer

    def frame(sentence: int) -> Frame:
        letters = LETTERS.encode_batch([list(DATES[sentence])])
        signs = model.write(letters)
        output = whole(letters, torch.cat([torch.tensor([[START]]), signs[:, :-1]], dim=1))
        return {
            "tokens": list(DATES[sentence]),
            "signs": [SIGN_NAMES[sign] for sign in signs[0]],
            "vocabulary": SIGN_NAMES,
            "shares": output.logits[0].softmax(-1),
            "encoder": with_mean(output.encoder_weights[0][0]),
            "own": with_mean(output.self_weights[0][0]),
            "cross": with_mean(output.cross_weights[0][0]),
        }

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {
                f"cross-attention, head {head}: a row for each sign": frame["cross"][head]
                for head in (2, 3)
            },
            rows=frame["signs"],
            columns=frame["tokens"],
            alt="Two maps of weights, heads 2 and 3, with a row for each sign of 1973-03-04 and a "
            "column for each letter of “sunday, march the 4th 1973”. To write the 3 of the month "
            "head 2 looks at the a of march, head 3 at its r and c. To write the day both look at "
            "the 4.",
            signed=False,
            per_line=1,
            numbers=False,
        )

    controls = {
        "sentence": Dropdown(options=[(text, i) for i, text in enumerate(DATES)], value=0,
                             description="date"),
        "step": SelectionSlider(options=range(1, ANSWER + 1), value=7, description="step"),
        "head": Dropdown(options=["mean", *"0123"], value="mean", description="head"),
        "attention": Dropdown(options=ATTENTIONS, description="attention"),
    }  # fmt: skip
    return explorer(
        "writing",
        "The transformer as it writes a date",
        controls,
        frame,
        still,
        models={"transformer": weights},
        reads=READS,
    )


def with_mean(weights: Tensor) -> Tensor:
    """The weights of each head, followed by their mean over the heads."""
    return torch.cat([weights, weights.mean(0, keepdim=True)])
