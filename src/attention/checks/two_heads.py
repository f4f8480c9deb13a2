"""check_two_heads (chapter 12): two heads by hand that find what followed last time.

Many matrices are right, so the two layers are run, and what counts is what they answer. Where they
answer wrongly, the first thing that goes wrong on the way is named, whatever the matrices' sizes.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from attention.trained.induction.data import VOCAB_SIZE, draw_sequences

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result
from .running import Message, aside, parts_of

BLOCKS = {
    name: slice(i * VOCAB_SIZE, (i + 1) * VOCAB_SIZE)
    for i, name in enumerate(("token", "place", "copy", "answer"))
}
TOKEN, PLACE, COPY, ANSWER = BLOCKS.values()
D_MODEL = len(BLOCKS) * VOCAB_SIZE
MATRICES = ("w_q", "w_k", "w_v", "w_o")
NAMES = [f"{name} of layer {layer}" for layer in (1, 2) for name in MATRICES]
SEQUENCES = 20
ENOUGH = 0.99  # of the answers
MOST = 0.6  # of the weight: more than half, so that one position decides
NEARLY_ALL = 0.9  # of the rows: the first row of a copy may do otherwise
LARGE = 60.0  # times a one-hot query, over √32: a score of 10


class Head(NamedTuple):
    """What one head does with rows x, (batch, seq, D_MODEL).

    scores: before the mask, (batch, seq, seq); weights the same, causal; added: like x.
    """

    scores: Tensor
    weights: Tensor
    added: Tensor


def run(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor) -> Head:
    scores = (x @ w_q) @ (x @ w_k).mT / w_q.shape[1] ** 0.5
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
    return Head(scores, weights, weights @ (x @ w_v) @ w_o)


def rows_of(token_ids: Tensor) -> Tensor:
    """One-hot tokens and positions, and columns for a copy and an answer: (batch, seq, D_MODEL)."""
    x = torch.zeros(*token_ids.shape, D_MODEL, dtype=torch.float64)
    one_hot = torch.eye(VOCAB_SIZE, dtype=torch.float64)
    x[..., TOKEN], x[..., PLACE] = one_hot[token_ids], one_hot
    return x


def marks(token_ids: Tensor) -> Tensor:
    """Where the next token is known: (batch, seq), True where this pair has come before."""
    following = token_ids.roll(-1, dims=1)
    same = (token_ids[:, :, None] == token_ids[:, None]) & (
        following[:, :, None] == following[:, None]
    )
    return same.tril(-1).any(dim=-1)


def relations(token_ids: Tensor) -> dict[str, Tensor]:
    """What a query may look at: by name, (batch, query, key), where that is."""
    query, key = token_ids[:, :, None], token_ids[:, None]
    places = torch.arange(token_ids.shape[1])
    steps = (places - places[:, None]).expand(len(token_ids), -1, -1)
    seen = steps <= 0
    return {
        "what followed": (key.roll(1, dims=2) == query) & seen & (places > 0),
        "itself": steps == 0,
        "the previous position": steps == -1,
        "two positions back": steps == -2,
        "the same token": (key == query) & seen,
        "the token before": (key == query.roll(1, dims=1)) & seen,
        "the first position": (places == 0) & seen,
        "the token one lower": (key == query - 1) & seen,
    }


def look(head: Head, token_ids: Tensor) -> str:
    """What a head looks at where there are marks, however loud its scores are; "" if unknown."""
    rows = marks(token_ids)
    scores, weights = head.scores[rows], head.weights[rows]  # (rows, seq)
    query = rows.nonzero()[:, 1]
    hidden = torch.arange(token_ids.shape[1]) > query[:, None]  # from this query
    highest = scores.masked_fill(hidden, -torch.inf).amax(dim=-1, keepdim=True)
    lowest = scores.masked_fill(hidden, torch.inf).amin(dim=-1, keepdim=True)
    if torch.allclose(lowest, highest, atol=1e-6):
        ahead = (scores.argmax(dim=-1) == query + 1).double().mean() >= NEARLY_ALL
        return "the next position" if ahead else "all alike"

    known = {name: related[rows] for name, related in relations(token_ids).items()}
    for name, there in known.items():
        if (weights * there).sum(dim=-1).mean() >= MOST:
            return name
    gap = 0.01 * (highest - lowest)
    for chosen, said in (
        ((scores >= highest - gap) & ~hidden, "{}, faintly"),
        ((scores <= lowest + gap) & ~hidden, "away from {}"),
    ):
        for name, there in known.items():
            # Not every row has such a place: the token one lower may come later.
            exists = there.any(dim=-1)
            inside = ~(chosen & ~there).any(dim=-1)
            if exists.double().mean() >= 0.3 and inside[exists].double().mean() >= NEARLY_ALL:
                return said.format(name)
    return ""


def written(head: Head) -> set[str]:
    """The blocks of columns that a head adds anything to."""
    return {name for name, block in BLOCKS.items() if head.added[..., block].abs().max() > 1e-6}


class Layers(NamedTuple):
    """Both heads on these tokens, and the numbers in the answer's columns, (batch, seq, 32)."""

    token_ids: Tensor
    first: Head
    second: Head
    answers: Tensor

    @property
    def right(self) -> Tensor:
        """At which marks the next token has the largest answer, and no other: (marks,)."""
        rows = marks(self.token_ids)
        answers = self.answers[rows].clone()
        following = self.token_ids.roll(-1, dims=1)[rows][:, None]
        due = answers.gather(1, following)[:, 0]
        return due > answers.scatter(1, following, -torch.inf).amax(dim=-1)

    @property
    def enough(self) -> bool:
        return bool(self.right.double().mean() >= ENOUGH)

    @property
    def habit(self) -> str:
        """What goes wrong first, from layer 1 on; "" where that is not known."""
        if self.enough:
            return "right"
        if (at := look(self.first, self.token_ids)) != "the previous position":
            return f"layer 1 looks at {at}" if at else ""
        wrote = written(self.first)
        if not wrote:
            return "layer 1 writes nothing"
        if "token" in wrote:
            return "layer 1 writes over the token"
        if torch.allclose(self.first.added, self.first.added[:1]):  # whatever the tokens are
            return "layer 1 hands on the position"
        if (at := look(self.second, self.token_ids)) != "what followed":
            return f"layer 2 looks at {at}" if at else ""
        if "answer" in wrote:
            return "layer 1 writes the answer"
        if "answer" not in written(self.second):
            return f"layer 2 writes {'elsewhere' if written(self.second) else 'nothing'}"
        rows = marks(self.token_ids)
        answers, following = self.answers[rows], self.token_ids.roll(-1, dims=1)[rows]
        for answer, due, name in (
            (answers.argmax(-1), self.token_ids[rows], "the token itself"),
            (answers.argmax(-1), self.second.weights[rows].argmax(-1), "the position"),
            (answers.argmin(-1), following, "all others"),
        ):
            if (answer == due).double().mean() >= NEARLY_ALL:
                return f"layer 2 answers {name}"
        return ""


def fit(w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor) -> bool:
    reads = w_q.shape[0] == w_k.shape[0] == w_v.shape[0] == w_o.shape[1] == D_MODEL
    return reads and w_q.shape[1] == w_k.shape[1] > 0 and w_v.shape[1] == w_o.shape[0] > 0


def heads_of(returned: object) -> tuple[list[Tensor], list[Tensor]]:
    """The two heads that the learner returned. Raises Message where they are none."""
    pair = isinstance(returned, tuple | list) and len(returned) == 2
    if pair and all(isinstance(head, tuple | list) and len(head) == 4 for head in returned):
        returned = (*returned[0], *returned[1])
    parts = parts_of(returned, NAMES)
    if len(parts) < len(NAMES):
        raise Message(
            f"{len(parts)} of {len(NAMES)} matrices came back: the shape of your first is "
            f"{tuple(parts[0].shape)}. Expected are two heads, each `(w_q, w_k, w_v, w_o)`."
        )
    for name, w in zip(NAMES, parts, strict=True):
        if w.ndim != 2:
            raise Message(f"Your {name} has {w.ndim} axes: {tuple(w.shape)}. A matrix has two.")
        if not w.isfinite().all():
            raise Message(f"Your {name} holds NaN or infinity.")
    doubles = [w.to(torch.float64) for w in parts]
    return doubles[:4], doubles[4:]


def layers(heads: tuple[list[Tensor], list[Tensor]], token_ids: Tensor) -> Layers:
    """Run both layers, each added to what enters it."""
    x = rows_of(token_ids)
    first = run(x, *heads[0])
    second = run(x + first.added, *heads[1])
    return Layers(token_ids, first, second, (first.added + second.added)[..., ANSWER])


def habit_of(heads: tuple[list[Tensor], list[Tensor]], token_ids: Tensor) -> str:
    """What goes wrong first. Raises Message where the matrices fit in no way."""
    if all(fit(*head) for head in heads):
        return layers(heads, token_ids).habit
    if all(fit(*head) or fit(*head[:3], head[3].T) for head in heads):
        return "w_o is transposed"
    if all(fit(*(w.T for w in head)) for head in heads):
        return "all are transposed"
    layer = next(i for i, head in enumerate(heads) if not fit(*head))
    shapes = [f"{name} {tuple(w.shape)}" for name, w in zip(MATRICES, heads[layer], strict=True)]
    raise Message(
        f"The head of layer {layer + 1} has {', '.join(shapes)}. A row of x has {D_MODEL} numbers: "
        f"w_q and w_k are ({D_MODEL}, d_key) with one d_key, w_v is ({D_MODEL}, d_value) and w_o "
        f"(d_value, {D_MODEL})."
    )


def seen(function: Callable) -> Callable:
    """`two_heads` as a function of the tokens, with one result for equal habits: its letters."""

    def asked(token_ids: Tensor) -> Tensor:
        return torch.tensor(list(habit_of(heads_of(function()), token_ids).encode()))

    return asked


EYE = torch.eye(VOCAB_SIZE)
BACK = torch.diag(torch.ones(VOCAB_SIZE - 1), -1)  # row p has its 1 in column p - 1


def reads(block: slice, as_what: Tensor = EYE) -> Tensor:
    """(D_MODEL, 32): what these columns hold."""
    w = torch.zeros(D_MODEL, VOCAB_SIZE)
    w[block] = as_what
    return w


def writes(block: slice) -> Tensor:
    """(32, D_MODEL): into these columns."""
    return reads(block).T


def first_head(**others: Tensor) -> tuple[Tensor, ...]:
    """Ask for the previous position, and copy its token; with other matrices by name."""
    right = {
        "w_q": LARGE * reads(PLACE, BACK),
        "w_k": reads(PLACE),
        "w_v": reads(TOKEN),
        "w_o": writes(COPY),
    }
    return tuple((right | others).values())


def second_head(**others: Tensor) -> tuple[Tensor, ...]:
    """Ask for a copy that is the query's token, and answer with the key's; others by name."""
    right = {
        "w_q": LARGE * reads(TOKEN),
        "w_k": reads(COPY),
        "w_v": reads(TOKEN),
        "w_o": writes(ANSWER),
    }
    return tuple((right | others).values())


def two_heads():
    """-> two heads, each w_q, w_k, w_v (128, d) and w_o (d, 128)."""
    return first_head(), second_head()


BANK = Bank.read(__file__, two_heads, globals(), made=seen)


@dataclass(frozen=True)
class Drawn(Case):
    """Tokens that the learner's matrices are run on; the function itself takes nothing."""

    def __str__(self) -> str:
        return f"rows of {D_MODEL} columns"


def cases(numbers: Numbers) -> list[Case]:
    drawn = draw_sequences(2 * SEQUENCES, numbers.numbers_from).token_ids
    # Nothing stands before the first token, so that no head can write it down.
    once = (drawn[:, 1:] != drawn[:, :1]).all(dim=1)
    return [Drawn({"token_ids": drawn[once][:SEQUENCES]})]


TASK = Task("two_heads", seen(two_heads), BANK, cases, {"habit": "letters"})


def in_numbers(function: Callable, token_ids: Tensor) -> str:
    """How many answers are right, and what the heads do at the first mark that is not."""
    done = layers(heads_of(function()), token_ids)
    right, rows = done.right, marks(token_ids)
    b, i = rows.nonzero()[~right][0].tolist()
    ids = token_ids[b].tolist()
    followed = ids.index(ids[i]) + 1
    first, second = done.first.weights[b], done.second.weights[b, i]
    at = int(second.argmax())
    return (
        f"{int(right.sum())} of {len(right)} answers are right. A wrong one: token {ids[i]} asks "
        f"from position {i}, and was at position {followed - 1} before. The head of layer 1 gives "
        f"{first[followed, followed - 1]:.2f} from position {followed} to the previous one. The "
        f"head of layer 2 gives position {followed} a weight of {second[followed]:.2f}, and its "
        f"most, {second[at]:.2f}, to position {at}. Token {ids[i + 1]} should have the largest "
        f"answer, and "
        f"{answered(done.answers[b, i])}."
    )


def answered(answers: Tensor) -> str:
    largest = (answers == answers.max()).nonzero()[:, 0].tolist()
    if len(largest) == 1:
        return f"token {largest[0]} has it"
    return f"{len(largest)} tokens share it"


def check_two_heads(function: Callable, *, seed: int = 0) -> Result:
    """Check two_heads() -> two heads, each (w_q, w_k, w_v, w_o), which together do induction.

    A row has 128 columns: one-hot the token, [:32], and its position, [32:64]; then 64 zeros. The
    first head is a causal layer, x + softmax(x w_q (x w_k)ᵀ / √d_key) x w_v w_o, and so is the
    second, which gets what comes out. In [96:] the token that followed last time must then have the
    largest number, at 99 of 100 tokens that have come before. w_q, w_k and w_v are (128, any), and
    multiply from the right; w_o is (any, 128).
    """
    result = examine(TASK, seen(function) if callable(function) else function, seed)
    with aside():
        [case] = cases(Numbers(seed))
        if result.passed:
            done = layers(heads_of(function()), case.inputs["token_ids"])
            said = (
                f"{int(done.right.sum())} of {len(done.right)} answers are right, in {SEQUENCES} "
                "sequences."
            )
            return replace(result, paragraphs=(said,))
        *said, last = result.paragraphs
        if not last.startswith((f"With {case}", f"That was with {case}")):
            return result
        with suppress(Exception, SystemExit):  # where the matrices do not fit, that is said already
            said.append(in_numbers(function, case.inputs["token_ids"]))
    return replace(result, paragraphs=tuple(said))
