"""check_find_by (chapter 4): W_q and W_k with which a verb looks at the word after "by"."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result
from .running import Message, aside, parts_of

SENTENCES = (
    ("the ball was chased by dogs", "chased"),
    ("dogs were seen by dogs", "seen"),
    ("the old cat was followed by birds at night", "followed"),
    ("birds were chased by dogs at night", "chased"),
    ("a small red ball was found by children", "found"),
)
# Each once, in the order in which the sentences use them.
WORDS = list(dict.fromkeys(word for text, _ in SENTENCES for word in text.split()))
BEHIND_BY = ("dogs", "birds", "children")
ENOUGH = 0.9  # of the verb's weight
BIG = 30.0  # makes the verbs of the bank sure: scores of hundreds


class Look(NamedTuple):
    """What the verb of one sentence does: its weights, and its scores, over the words."""

    tokens: list[str]
    verb: int
    scores: Tensor
    weights: Tensor

    @property
    def wanted(self) -> int:
        return self.tokens.index("by") + 1

    @property
    def enough(self) -> bool:
        return bool(self.weights[self.wanted] >= ENOUGH)


def looks(function: Callable, words: list[str], n_positions: int) -> list[Look]:
    """Ask the learner for W_q and W_k, and compute the verb's row in every sentence."""
    w_q, w_k = matrices(function(list(words), n_positions), len(words) + n_positions)
    found = []
    for text, word in SENTENCES:
        tokens = text.split()
        x = torch.zeros(len(tokens), len(words) + n_positions)
        for position, token in enumerate(tokens):
            x[position, words.index(token)] = 1.0
            x[position, len(words) + position] = 1.0
        verb = tokens.index(word)
        scores = (x[verb] @ w_q) @ (x @ w_k).T / math.sqrt(w_q.shape[1])
        found.append(Look(tokens, verb, scores, scores.softmax(dim=-1)))
    return found


def matrices(returned: object, d_model: int) -> tuple[Tensor, Tensor]:
    """The two matrices that the learner returned. Raises Message where they do not fit."""
    parts = parts_of(returned, ["w_q", "w_k"])
    if len(parts) < 2:
        raise Message(
            f"One tensor came back: the shape of your w_q is {tuple(parts[0].shape)}, and w_k is "
            "missing. It must return (w_q, w_k)."
        )
    w_q, w_k = (part.to(torch.float32) for part in parts)
    for name, w in (("w_q", w_q), ("w_k", w_k)):
        if w.ndim != 2 or w.shape[0] != d_model:
            raise Message(
                f"The shape of your {name} is {tuple(w.shape)}. A row of x has {d_model} numbers, "
                f"so that {name} has {d_model} rows, one for each of them: (d_model, d_key)."
            )
    if w_q.shape != w_k.shape or not w_q.shape[1]:
        raise Message(
            f"Your w_q is {tuple(w_q.shape)} and your w_k {tuple(w_k.shape)}. A query and a key "
            "meet in a dot product, so both have as many columns, d_key."
        )
    return w_q, w_k


def direction(found: Iterable[Look]) -> Tensor:
    """Where the verbs look, whatever the size of the scores: (sentence · word,), ties shared."""
    rows = []
    for look in found:
        size = look.scores.abs().max().clamp_min(1e-30)
        rows.append((look.scores * (1e5 / size)).softmax(dim=-1))
    return torch.cat(rows)


def seen(function: Callable) -> Callable:
    """`find_by` as a function of one answer for equal looks: where, and whether surely enough."""

    def asked(words: list[str], n_positions: int) -> tuple[Tensor, Tensor]:
        found = looks(function, words, n_positions)
        where = direction(found)
        best = torch.cat([torch.eye(len(look.tokens))[look.wanted] for look in found])
        unsure = torch.equal(where.round(decimals=3), best) and not all(
            look.enough for look in found
        )
        # Where the verbs look elsewhere, how surely they do it is not the point.
        if all(look.enough for look in found):
            where = best
        return where, torch.tensor([0.0 if unsure else 1.0])

    return asked


def zeros(words, n_positions, d_key):
    """w_q and w_k to be filled, each (len(words) + n_positions, d_key)."""
    return torch.zeros(2, len(words) + n_positions, d_key).unbind()


def shifted(words, n_positions, by, *, size=BIG):
    """Ask for `by` places further: w_q shifts the position, w_k tells it."""
    w_q, w_k = zeros(words, n_positions, n_positions)
    for position in range(n_positions):
        w_k[len(words) + position, position] = size
        if 0 <= position + by < n_positions:
            w_q[len(words) + position, position + by] = size
    return w_q, w_k


def find_by(words, n_positions):
    """words, n_positions -> w_q, w_k, each (len(words) + n_positions, d_key)."""
    return shifted(words, n_positions, 2)


BANK = Bank.read(__file__, find_by, globals(), made=seen)


def cases(numbers: Numbers) -> list[Case]:
    shuffled = numbers.sizes_from.sample(WORDS, len(WORDS))
    # The longest sentence has 9 words.
    return [
        Case({"words": words, "n_positions": n_positions}, unsaid=("words",))
        for words, n_positions in ((WORDS, 9), (shuffled, 12))
    ]


TASK = Task("find_by", seen(find_by), BANK, cases, {"looks": "word", "sure": "once"})


def in_numbers(function: Callable, seed: int) -> str:
    """Say where the first verb that does not look well enough puts its weight; "" if none does."""
    for case in cases(Numbers(seed)):
        for look in looks(function, **case.inputs):
            if not look.enough:
                shares = zip(look.tokens, look.weights.tolist(), strict=True)
                return (
                    f'In "{" ".join(look.tokens)}" your "{look.tokens[look.verb]}" gives '
                    f"{', '.join(f'{share:.2f} to {word}' for word, share in shares)}. "
                    f'"{look.tokens[look.wanted]}" after "by" must get {ENOUGH} or more.'
                )
    return ""


def check_find_by(function: Callable, *, seed: int = 0) -> Result:
    """Check find_by(words, n_positions) -> w_q, w_k: the verb looks at the word after "by".

    A row of x has a 1 for its word, in column `words.index(word)`, a 1 for its position, in column
    `len(words) + place`, and 0 elsewhere. w_q and w_k are (len(words) + n_positions, d_key), for
    any d_key. In the verb's row of softmax(x w_q (x w_k)ᵀ / √d_key) the word after "by" must get
    0.9 or more, in several sentences in the passive.
    """
    result = examine(TASK, seen(function) if callable(function) else function, seed)
    if result.passed:
        said = f'In {len(SENTENCES)} sentences the verb gives the word after "by" 0.9 or more.'
        return replace(result, paragraphs=(said,))
    with aside():
        try:
            numbers = in_numbers(function, seed)
        except (Exception, SystemExit):  # said already
            numbers = ""
    return replace(result, paragraphs=(*result.paragraphs[:-1], numbers)) if numbers else result
