"""check_greedy (chapter 13): writing one sign at a time, each time the likeliest."""

import random
from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

VOCAB = 11  # signs that the check's models know


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


BANK = Bank.read(__file__, greedy, globals())


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
