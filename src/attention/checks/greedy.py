"""check_greedy (chapter 13): writing one sign at a time, each time the likeliest."""

import random
from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
VOCAB = 11  # signs that the check's models know
LAST_ROW = "The last row scores what comes next: `logits_of(signs)[-1].argmax()`."


def greedy(logits_of, start, end, longest):
    """A model, two ids, the most signs to write -> (written,)."""
    return steps(logits_of, start, end, longest)


def steps(logits_of, start, end, longest, pick=lambda logits: logits[-1].argmax(), reads=None):
    """Write with one thing changed: which sign is picked, or what the model reads of the signs."""
    signs = torch.tensor([start])
    while len(signs) <= longest and (len(signs) == 1 or signs[-1] != end):
        best = pick(logits_of(signs if reads is None else reads(signs)))
        signs = torch.cat([signs, best[None]])
    return signs[1:]


@BANK.mistake(
    "Every step takes the first row of the logits, which says what follows `<start>`. So the first "
    "sign is written again and again.",
    LAST_ROW,
)
def first_row(logits_of, start, end, longest):
    return steps(logits_of, start, end, longest, lambda logits: logits[0].argmax())


@BANK.mistake(
    "The largest of the last column is looked up: of one sign, the row in which it scores best. A "
    "row stands for a place, a column for a sign.",
    LAST_ROW,
)
def last_column(logits_of, start, end, longest):
    return steps(logits_of, start, end, longest, lambda logits: logits[:, -1].argmax())


@BANK.mistake(
    "`argmax()` of all rows together counts through the whole matrix. What it returns is a place "
    "in (seq, vocab), and from the second step on no id.",
    LAST_ROW,
)
def over_all_rows(logits_of, start, end, longest):
    return steps(logits_of, start, end, longest, torch.argmax)


@BANK.mistake(
    "The model reads the newest sign alone. It has no memory of its own: what came before must be "
    "read again at every step, from `<start>` on.",
    "Give it all signs so far: `logits_of(signs)`.",
)
def newest_alone(logits_of, start, end, longest):
    return steps(logits_of, start, end, longest, reads=lambda signs: signs[-1:])


@BANK.mistake(
    "The first step reads nothing, so there is no row that could say what comes first.",
    "Begin with `<start>`: `signs = torch.tensor([start])`.",
)
def from_nothing(logits_of, start, end, longest):
    return logits_of(torch.empty(0, dtype=torch.int64))[-1].argmax()


@BANK.mistake(
    "The ids go in with an axis for the batch. Models in this chapter write many dates at once; "
    "this one writes a single answer, and reads ids of shape (seq,).",
    "One pair of brackets is enough: `logits_of(torch.tensor(signs))`, of which `[-1]` is the last "
    "row.",
)
def batched(logits_of, start, end, longest):
    return logits_of(torch.tensor([[start]]))[:, -1].argmax(-1)


@BANK.mistake(
    "`<start>` stands in front of what came back. It was put there; the model did not write it.",
    "Return the signs after it: `signs[1:]`.",
)
def start_returned(logits_of, start, end, longest):
    return torch.cat([torch.tensor([start]), greedy(logits_of, start, end, longest)])


@BANK.mistake(
    "`<end>` is missing. The model wrote it, and an answer without it is one that was cut off.",
    "Append the sign first, and then stop if it was `<end>`.",
)
def end_left_out(logits_of, start, end, longest):
    written = greedy(logits_of, start, end, longest)
    return written[written != end]


@BANK.mistake(
    "It goes on after `<end>`. What comes then is noise: the model never saw a sign after `<end>`.",
    "Leave the loop as soon as the newest sign is `end`.",
)
def never_stops(logits_of, start, end, longest):
    return steps(logits_of, start, None, longest)


@BANK.mistake(
    "Where no `<end>` comes, one sign too few is written. `<start>` seems to be counted; `longest` "
    "is how many signs the model may write.",
    "Go round `longest` times: `for _ in range(longest)`.",
)
def start_counted(logits_of, start, end, longest):
    return steps(logits_of, start, end, longest - 1)


@BANK.mistake(
    "All signs come from one pass over `<start>` alone, repeated: no step has seen what was "
    "written before it. One pass is enough in training, where the signs are known.",
    "Write one sign, append it, and read all of them again.",
)
def in_one_pass(logits_of, start, end, longest):
    written = logits_of(torch.full((longest,), start)).argmax(-1)
    ends = (written == end).nonzero().flatten().tolist()
    return written[: ends[0] + 1] if ends else written


@BANK.mistake(
    "A single sign is written.",
    "Append it to the signs and go round again, until `end` or until there are `longest`.",
)
def one_step(logits_of, start, end, longest):
    return greedy(logits_of, start, end, 1)


@BANK.mistake("This writes the unlikeliest sign at every step.", "Take `argmax`, not `argmin`.")
def smallest(logits_of, start, end, longest):
    return steps(logits_of, start, end, longest, lambda logits: logits[-1].argmin())


@BANK.mistake(
    "The new sign is put in front of the others, and the model reads the answer backwards.",
    "Append it behind them: `torch.cat([signs, best[None]])`.",
)
def put_in_front(logits_of, start, end, longest):
    signs = torch.tensor([start])
    while len(signs) <= longest and (len(signs) == 1 or signs[0] != end):
        signs = torch.cat([logits_of(signs)[-1].argmax()[None], signs])
    return signs[:-1]


def model_of(answer: list[int], start: int, seed: int) -> Callable[[Tensor], Tensor]:
    """A model that writes `answer` after `start`, and after anything else what chance says."""

    def logits_of(signs: Tensor) -> Tensor:
        if signs.ndim != 1 or signs.is_floating_point():
            raise ValueError(
                f"signs must be (seq,), ids as integers, got {signs.dtype} {tuple(signs.shape)}"
            )
        ids = signs.tolist()
        if strange := [one for one in ids if not 0 <= one < VOCAB]:
            raise ValueError(f"signs must be ids from 0 to {VOCAB - 1}, got {strange[0]}")
        rows = []
        for i in range(len(ids)):
            chance = random.Random(f"{seed} {ids[: i + 1]}")
            row = [chance.uniform(-2, 2) for _ in range(VOCAB)]
            if i < len(answer) and ids[: i + 1] == [start, *answer[:i]]:
                row[answer[i]] = 3.0 + i  # surer and surer
            rows.append(row)
        return torch.tensor(rows).reshape(len(rows), VOCAB)

    return logits_of


def cases(numbers: Numbers) -> list[Case]:
    draw = numbers.sizes_from
    start, end, *others = draw.sample(range(1, VOCAB), VOCAB - 1)
    length, longer = sorted(numbers.sizes(2, least=4))

    def case(answer: list[int], longest: int) -> Case:
        model = model_of(answer, start, draw.randrange(1000))
        inputs = {"logits_of": model, "start": start, "end": end, "longest": longest}
        return Case(inputs, unsaid=("logits_of",))

    return [
        case([*draw.choices(others, k=length), end], longer + 2),
        case(draw.choices(others, k=longer + 1), longer),  # cut off: no <end> comes
    ]


TASK = Task(
    "greedy",
    greedy,
    BANK,
    cases,
    {"signs": "written"},
    "Greedy writing draws nothing: the sign with the largest logit comes next, every time.",
)


def check_greedy(function: Callable, *, seed: int = 0) -> Result:
    """Check greedy(logits_of, start, end, longest) -> signs.

    `logits_of` takes the ids of the signs so far, (seq,), and returns logits (seq, vocab): row i
    scores the sign after the i-th. Signs are written after `start`, each the likeliest, until `end`
    or until there are `longest`: (written,), with `end` and without `start`.
    """
    return examine(TASK, function, seed)
