"""A written date turned into its ISO date, sign by sign: which letters each step looks at."""

from ipywidgets import Dropdown, SelectionSlider

from attention.explore.explorer import Explorer, Frame, Reads, explorer
from attention.plots import Picture, plot_matrices
from attention.trained.dates import (
    ANSWER,
    END,
    LETTERS,
    LONGEST,
    SIGN_NAMES,
    START,
    STEPS,
    WrittenDate,
    held_out_dates,
    load,
)

# Held-out days, written in several ways; each fits the width of a phone.
DATES = (
    "friday, the 26th of may, 1916",
    "fri oct 13, 1978",
    "wednesday, september second, 2054",
    "thirty-first july nineteen oh three",
    "11 october two thousand and two",
    "sunday, 18th jan 2060",
)
ATTENTIONS = {
    "none: the last state": "narrow-last-state-longer",
    "additive": "narrow-additive",
    "dot": "narrow-dot",
    "general": "narrow-general",
    "concat": "narrow-concat",
}
# A recurrent model has no positions that run out, so a reader may fill the field with 200 letters.
# The view itself refuses what is longer than a date, and says why.
READS = Reads("date", "your own date", "the 1st of may, 2024", list(LETTERS.tokens), 200)


def alignment_explorer() -> Explorer:
    """Explore how a recurrent model writes a date, and which letters it looks at for each sign.

    A text field takes a date of the reader's own.

    Returns:
        The explorer, with controls ``sentence``, ``attention`` and ``step``.
    """
    models = {
        name: load(stored).requires_grad_(False).double() for name, stored in ATTENTIONS.items()
    }
    dates = {date.text: date for date in held_out_dates() if date.text in DATES}

    def frame(sentence: str, attention: str) -> Frame:
        model = models[attention]
        encoded = model.encoder(LETTERS.encode_batch([list(sentence)]))
        signs, weights = model.decoder.greedy(
            encoded, start_id=START, end_id=END, max_length=ANSWER
        )
        frame = {
            "tokens": list(sentence),
            "signs": [SIGN_NAMES[sign] for sign in signs[0]],
            "vocabulary": SIGN_NAMES,
            "iso": dates[sentence].iso,
            # What each sign of the answer is about, and the letters that say it.
            "parts": [part(step) for step in range(ANSWER)],
            "said": {name: said(dates[sentence], name) for name in STEPS},
            "longest": LONGEST,
        }
        if weights.any():
            return frame | {"weights": weights[0], "context": (weights[0] @ encoded[0])[:, None]}
        _, attend = model.decoder.attend_to(encoded)
        last_states, _ = attend(encoded)  # the same for every query
        return frame | {"context": last_states.expand(signs.shape[1], -1, -1)}

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {"each row: where the step that writes this sign looks": frame["weights"]},
            rows=frame["signs"],
            columns=frame["tokens"],
            alt="A map of weights, a row for each sign of 1916-05-26, a column for each letter of "
            "“friday, the 26th of may, 1916”. The rows of the year look at the end of the text, "
            "those of the month at its middle and those of the day before it.",
            signed=False,
            numbers=False,
        )

    controls = {
        "sentence": Dropdown(options=DATES, value=DATES[0], description="date"),
        "attention": Dropdown(options=list(ATTENTIONS), value="additive", description="attention"),
        "step": SelectionSlider(options=range(1, ANSWER + 1), value=7, description="step"),
    }
    return explorer(
        "alignment",
        "A date written sign by sign",
        controls,
        frame,
        still,
        models={
            name: {"decoder": type(model.decoder).__name__, "score": name} | model.state_dict()
            for name, model in models.items()
        },
        reads=READS,
    )


def part(step: int) -> str:
    """Which of year, month and day a step writes; "" for "-" and the end."""
    return next((name for name, steps in STEPS.items() if steps.start <= step < steps.stop), "")


def said(date: WrittenDate, name: str) -> list[int]:
    """The first letter that says the year, the month or the day, and the one after the last."""
    span = getattr(date, name)
    return [span.start, span.stop]
