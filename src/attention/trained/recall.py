"""Recall: which value was written beside this key? One layer, and in it any mechanism of the book.

Pairs of a key and a value are written, one pair a position. Then keys are asked, alone, and the
model answers each with its value. The mechanisms differ in what they keep of the pairs: all of
them, the last few, or sums of a fixed size. So they differ in what they can answer, and none is
wrong: each forgets what it must. `MECHANISMS` names them, `numbers_kept` says how much each keeps.

There are two tasks. In the first all keys of a sequence differ. In the second every key is written
twice, with another value, and the later one counts. Attention without positions sees a set of
pairs: it cannot know which of two came later, and answers half of the questions. A state that fades
or is corrected can know.

The model has nothing else: embedded keys and values, one layer whose output is added to what enters
it, a linear read-out. There is no bias, no normalisation, and no position but where a mechanism's
name says so. A key finds its pair by what it is, not by where it stands. Widths are chosen so that
all models have the same number of parameters, within 5 percent of softmax's 7,168.

`python -m attention.trained.recall_training` trains them all: 3 seeds, 2 tasks, some 10 s each.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_size
from attention.cached.grouped_query import GroupedQueryAttention
from attention.cached.latent import LatentAttention
from attention.cost import dense, linear, sparse
from attention.dot_product import fused_attention
from attention.linear.delta_rule import (
    GatedDeltaNetAttention,
    decayed_linear_attention,
    of_length_1,
)
from attention.linear.linear_transformer import linear_attention
from attention.linear.linformer import Linformer
from attention.linear.performer import Performer
from attention.linear.random_features import random_feature_attention
from attention.mechanism import Mechanism
from attention.multihead import MultiHeadAttention
from attention.positions.learned import LearnedPositions
from attention.sparse.hashing import ReformerAttention
from attention.sparse.strided import strided_attention
from attention.sparse.union import sparse_attention
from attention.trained import weight_files
from attention.trained.fitting import build, fit

N_KEYS, N_VALUES = 64, 16
LENGTHS = (4, 8, 16, 32, 64)  # pairs of the sequences that a model is measured on
SHORTEST, LONGEST = 4, 64  # pairs of a sequence in training
QUESTIONS = 8  # of a sequence in training; where it is measured, one
MOST = LONGEST + QUESTIONS  # positions of the longest sequence
D_MODEL, N_HEADS = 32, 2
BATCH, STEPS, LEARNING_RATE = 64, 800, 0.01
SEEDS = range(3)
TASKS = {"once": False, "rewritten": True}  # how the table's file names them
HASHED = {"n_buckets": 8, "n_rounds": 1, "chunk_length": 8}
WEIGHTS = Path(__file__).parent / "recall_weights"


class Pairs(NamedTuple):
    """Sequences of pairs, and the questions after them.

    Attributes:
        keys: (batch, pairs), from 0 to 63.
        values: (batch, pairs), from 0 to 15.
        asked: (batch, questions), keys that are among the pairs.
        answers: (batch, questions), the value that was last written beside each.
    """

    keys: Int64[Tensor, "batch pairs"]
    values: Int64[Tensor, "batch pairs"]
    asked: Int64[Tensor, "batch questions"]
    answers: Int64[Tensor, "batch questions"]


def draw_pairs(
    count: int,
    n_pairs: int,
    n_questions: int,
    generator: torch.Generator,
    *,
    rewritten: bool = False,
) -> Pairs:
    """Draw sequences of pairs, and questions after them.

    Args:
        count: how many sequences.
        n_pairs: how many pairs each has, at most as many as there are keys, 64.
        n_questions: how many keys are asked after them, each drawn from the pairs by itself.
        generator: where the random numbers come from.
        rewritten: whether each key comes twice, in any order, and never with the same value. With
            an odd number of pairs one key comes once.

    Raises:
        ValueError: there are not that many keys.

    Source:
        Arora et al. 2023 (multi-query associative recall), made smaller: there a key and its value
        are two tokens, which a model has to join first; here they are one. Schlag et al. 2021 write
        keys again, to tell the delta rule from the sum.

    Example:
        >>> import torch
        >>> from attention.trained.recall import draw_pairs
        >>> pairs = draw_pairs(1, 4, 2, torch.Generator().manual_seed(1), rewritten=True)
        >>> pairs.keys, pairs.values
        (tensor([[50, 50, 28, 28]]), tensor([[ 1, 15, 13,  5]]))
        >>> pairs.asked, pairs.answers
        (tensor([[50, 50]]), tensor([[15, 15]]))
    """
    for name, size in {"count": count, "n_pairs": n_pairs, "n_questions": n_questions}.items():
        require_size(name, size)
    if n_pairs > N_KEYS:
        raise ValueError(f"n_pairs={n_pairs} is more than the {N_KEYS} keys that there are")

    def shuffled(n: int) -> Int64[Tensor, "count n"]:
        return torch.rand(count, n, generator=generator).argsort(1)

    keys = shuffled(N_KEYS)[:, :n_pairs]
    values = torch.randint(N_VALUES, (count, n_pairs), generator=generator)
    if rewritten:  # the last pairs take the keys of the first, then all are shuffled
        again = n_pairs // 2
        change = torch.randint(1, N_VALUES, (count, again), generator=generator)
        order = shuffled(n_pairs)
        keys = torch.cat((keys[:, : n_pairs - again], keys[:, :again]), dim=1).gather(1, order)
        other = (values[:, :again] + change) % N_VALUES
        values = torch.cat((values[:, : n_pairs - again], other), dim=1).gather(1, order)
    asked = keys.gather(1, torch.randint(n_pairs, (count, n_questions), generator=generator))
    # The largest of the places where the key stands is its last.
    place = torch.arange(1, n_pairs + 1) * (asked[..., None] == keys[:, None])
    return Pairs(keys, values, asked, values.gather(1, place.argmax(-1)))


class RecallModel(nn.Module):
    """Embedded pairs and questions, one layer of attention, and a read-out.

    Modules by name: `key` and `value`, each an nn.Embedding, whose sum is a pair; `positions`,
    learned, or an nn.Identity; `attention`; and `to_value`, an nn.Linear(d_model, 16) without bias.

    Args:
        attention: a layer with a `d_model` that is called as `MultiHeadAttention` is.
        causal: whether the layer is asked to hide the future. Nothing would leak here, since
            questions hold no values; but a model that writes has no future to look at.
        positions: whether learned vectors are added to the rows, which say where a pair stands.

    Source:
        This book's own.

    Example:
        >>> from functools import partial
        >>> import torch
        >>> from attention import Mechanism, MultiHeadAttention, linear_attention
        >>> from attention.trained.recall import RecallModel, draw_pairs
        >>> model = RecallModel(MultiHeadAttention(32, 2))
        >>> model.attention.attend = Mechanism(partial(linear_attention, causal=True))
        >>> pairs = draw_pairs(3, 20, 5, torch.Generator().manual_seed(0))
        >>> model(pairs.keys, pairs.values, pairs.asked).shape
        torch.Size([3, 5, 16])
    """

    def __init__(
        self, attention: nn.Module, *, causal: bool = False, positions: bool = False
    ) -> None:
        super().__init__()
        d_model = attention.d_model
        self.key = nn.Embedding(N_KEYS, d_model)
        self.value = nn.Embedding(N_VALUES, d_model)
        self.positions = LearnedPositions(d_model, MOST) if positions else nn.Identity()
        self.attention, self.causal = attention, causal
        self.to_value = nn.Linear(d_model, N_VALUES, bias=False)

    def embed(
        self,
        keys: Int64[Tensor, "batch pairs"],
        values: Int64[Tensor, "batch pairs"],
        asked: Int64[Tensor, "batch questions"],
    ) -> Float[Tensor, "batch seq d_model"]:
        """The rows as attention sees them, (batch, pairs + questions, d_model)."""
        pairs = self.key(keys) + self.value(values)
        return self.positions(torch.cat((pairs, self.key(asked)), dim=1))

    def forward(
        self,
        keys: Int64[Tensor, "batch pairs"],
        values: Int64[Tensor, "batch pairs"],
        asked: Int64[Tensor, "batch questions"],
    ) -> Float[Tensor, "batch questions n_values"]:
        """Answer each question.

        Args:
            keys: (batch, pairs).
            values: (batch, pairs).
            asked: (batch, questions).

        Returns:
            A logit for each value, (batch, questions, 16).
        """
        x = self.embed(keys, values, asked)
        attended, _ = self.attention(x, causal=self.causal)
        return self.to_value((x + attended)[:, keys.shape[1] :])


def in_every_head(function: Callable[..., Tensor], d_model: int = D_MODEL) -> MultiHeadAttention:
    """`MultiHeadAttention` in which a function attends that hides the future by itself."""
    attend = Mechanism(function, hides_future=True)
    return MultiHeadAttention(d_model, N_HEADS, bias=False, attend=attend)


def fading(*alphas: float) -> MultiHeadAttention:
    """Linear attention in which each head's state keeps the part α at every token."""
    alpha = torch.tensor(alphas)[None, :, None]

    def decay(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        output, _ = decayed_linear_attention(query, key, value, alpha.to(query), mask)
        return output

    return in_every_head(decay)


def sum_after_silu() -> MultiHeadAttention:
    """The delta layer with a plain sum for a rule: SiLU, queries and keys of length 1, no gate."""

    def plain(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = (F.silu(y) for y in (query, key, value))
        query, key = of_length_1(query), of_length_1(key)
        output, _ = decayed_linear_attention(query, key, value, key.new_ones(1, 1, 1), mask)
        return output

    return in_every_head(plain)


def delta_rule() -> GatedDeltaNetAttention:
    """The gated delta rule without its decay: α = exp(-exp(log_rate) · …) = 1."""
    attention = GatedDeltaNetAttention(D_MODEL, N_HEADS, bias=False)
    attention.log_rate.requires_grad_(False).fill_(-math.inf)
    return attention


def random_features() -> MultiHeadAttention:
    """Random Feature Attention with 32 random rows, a sine and a cosine of each."""
    projection = torch.randn(32, D_MODEL // N_HEADS)

    def mechanism(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        rows = projection.to(query)
        return random_feature_attention(query, key, value, rows, mask, causal=True, scale=2.0)

    return in_every_head(mechanism)


class Contender(NamedTuple):
    """How a model with the mechanism is made, and how many numbers it keeps of n pairs."""

    make: Callable[[], RecallModel]
    kept: Callable[[int], int]


def performer(n_features: int) -> Contender:
    """`Performer` with its features drawn once."""

    def make() -> RecallModel:
        attention = MultiHeadAttention(D_MODEL, N_HEADS, bias=False)
        attention.attend = Performer(attention.d_key, n_features=n_features)
        return RecallModel(attention, causal=True)

    return Contender(make, lambda n: linear.random_features(n, D_MODEL, N_HEADS, n_features).cache)


def linformer(d_model: int, proj_len: int) -> MultiHeadAttention:
    """`Linformer` with a column for each row of the largest task."""
    attention = MultiHeadAttention(d_model, N_HEADS, bias=False)
    attention.attend = Linformer(max_length=MOST, proj_len=proj_len)
    return attention


def state_alone(make: Callable[[], nn.Module]) -> Contender:
    """A layer that keeps one matrix of d_key × d_key numbers for each head."""
    return Contender(lambda: RecallModel(make()), lambda n: linear.decay(n, D_MODEL, N_HEADS).cache)


def in_window(window: int, n_sinks: int = 0) -> Contender:
    """The last `window` tokens and the first n_sinks."""
    attend = partial(
        sparse_attention, window=window, global_tokens=range(n_sinks), causal=True, block=16
    )
    return Contender(
        lambda: RecallModel(in_every_head(attend)),
        lambda n: sparse.sinks(n, D_MODEL, N_HEADS, window, n_sinks).cache,
    )


# What costs fewer parameters than four square matrices is made wider, and what costs more narrower.
MECHANISMS = {
    "softmax": Contender(
        lambda: RecallModel(in_every_head(partial(fused_attention, causal=True))),
        lambda n: dense.multi_head(n, D_MODEL, N_HEADS).cache,
    ),
    "softmax, learned positions": Contender(
        lambda: RecallModel(
            in_every_head(partial(fused_attention, causal=True), 26), positions=True
        ),
        lambda n: dense.multi_head(n, 26, N_HEADS).cache,
    ),
    "grouped-query, 1 key head": Contender(
        lambda: RecallModel(GroupedQueryAttention(36, N_HEADS, 1, bias=False), causal=True),
        lambda n: dense.grouped_query(n, 36, N_HEADS, 1).cache,
    ),
    "latent, 8 numbers": Contender(
        lambda: RecallModel(LatentAttention(36, N_HEADS, 8, bias=False), causal=True),
        lambda n: dense.latent(n, 36, N_HEADS, 8).cache,
    ),
    "window 8": in_window(8),
    "window 16": in_window(16),
    "window 12, 4 sinks": in_window(12, n_sinks=4),
    "strided 8": Contender(
        lambda: RecallModel(in_every_head(partial(strided_attention, stride=8))),
        lambda n: sparse.strided(n, D_MODEL, N_HEADS, 8).cache,
    ),
    "LSH, 8 buckets": Contender(
        lambda: RecallModel(ReformerAttention(36, N_HEADS, **HASHED, bias=False), causal=True),
        lambda n: linear.reformer(n, 36, N_HEADS, **HASHED).cache,
    ),
    "linear": Contender(
        lambda: RecallModel(in_every_head(partial(linear_attention, causal=True))),
        lambda n: linear.linear(n, D_MODEL, N_HEADS).cache,
    ),
    "Performer, 16 features": performer(16),
    "Performer, 64 features": performer(64),
    "random features, 64": Contender(
        lambda: RecallModel(random_features()),
        lambda n: linear.random_features(n, D_MODEL, N_HEADS, 64).cache,
    ),
    # Not causal, so that no model that writes could have it. Here it reads no answer from ahead.
    "Linformer, 16 mixtures": Contender(
        lambda: RecallModel(linformer(24, proj_len=16)),
        lambda n: linear.linformer(n, 24, N_HEADS, 16, max_length=MOST).cache,
    ),
    "sum after SiLU": state_alone(sum_after_silu),
    "decay": state_alone(lambda: fading(1 - 1 / 32, 1 - 1 / 64)),  # RetNet's first two heads
    "fast decay": state_alone(lambda: fading(1 - 1 / 8, 1 - 1 / 16)),
    "delta rule": state_alone(delta_rule),
    "gated delta rule": state_alone(lambda: GatedDeltaNetAttention(D_MODEL, N_HEADS, bias=False)),
}


def numbers_kept(mechanism: str, n_pairs: int) -> int:
    """How many numbers the layer must keep of n_pairs to answer what comes after them.

    Args:
        mechanism: one of `MECHANISMS`.
        n_pairs: how many pairs were written.

    Raises:
        ValueError: there is no such mechanism.

    Source:
        `attention.cost`, each mechanism's `Cost.cache`.

    Example:
        >>> from attention.trained.recall import numbers_kept
        >>> [numbers_kept(each, 64) for each in ("softmax", "latent, 8 numbers", "linear")]
        [4096, 512, 544]
    """
    require_mechanism(mechanism)
    require_size("n_pairs", n_pairs)
    return MECHANISMS[mechanism].kept(n_pairs)


def train(mechanism: str, seed: int, *, rewritten: bool = False, steps: int = STEPS) -> RecallModel:
    """Train one model: some 4 s on one processor with softmax, 15 s with the gated delta rule.

    Sequences are drawn as they are used, all of a batch with one number of pairs from 4 to 64. The
    weights are rounded to half precision, in which one of them is stored.

    Args:
        mechanism: one of `MECHANISMS`.
        seed: draws the first weights and the sequences, and random features where there are any.
        rewritten: whether each key is written twice.
        steps: how many batches of 64 sequences.

    Raises:
        ValueError: there is no such mechanism.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.recall import train
        >>> train("linear", seed=0, steps=2).attention.n_heads
        2
    """
    require_mechanism(mechanism)
    model = build(MECHANISMS[mechanism].make, seed)
    generator = torch.Generator().manual_seed(seed)

    def loss_at(step: int) -> Tensor:
        n_pairs = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        *shown, answers = draw_pairs(BATCH, n_pairs, QUESTIONS, generator, rewritten=rewritten)
        return F.cross_entropy(model(*shown).flatten(0, 1), answers.flatten())

    return fit(model, loss_at, steps=steps, learning_rate=LEARNING_RATE)


def new_pairs(n_pairs: int, count: int = 2000, *, rewritten: bool = False) -> Pairs:
    """Draw new sequences with one question each to measure on, the same at every call.

    One question, so that nothing stands between it and the pairs.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.recall import new_pairs
        >>> new_pairs(32, 50).keys.shape
        torch.Size([50, 32])
    """
    generator = torch.Generator().manual_seed(10**6 + n_pairs)
    return draw_pairs(count, n_pairs, 1, generator, rewritten=rewritten)


@torch.no_grad()
def accuracy(model: RecallModel, pairs: Pairs) -> float:
    """The share of the questions that are answered right; guessing comes to 1/16.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.recall import accuracy, load_recall, new_pairs
        >>> accuracy(load_recall(), new_pairs(64, 500)) > 0.99
        True
    """
    *shown, answers = pairs
    return (model(*shown).argmax(-1) == answers).double().mean().item()


def accuracy_by_pairs(model: RecallModel, *, rewritten: bool = False) -> dict[int, float]:
    """The accuracy on 2,000 new sequences of each number of pairs in `LENGTHS`.

    Source:
        This book's own, after Arora et al. 2023.

    Example:
        >>> from functools import partial
        >>> from attention import Mechanism, sparse_attention
        >>> from attention.trained.recall import accuracy_by_pairs, load_recall
        >>> model = load_recall()  # trained with softmax over all pairs
        >>> model.attention.attend = Mechanism(partial(sparse_attention, window=8, causal=True))
        >>> by_pairs = accuracy_by_pairs(model)
        >>> by_pairs[8] > 0.99, by_pairs[64] < 0.25  # it finds the last 8 and guesses the others
        (True, True)
    """
    return {n: accuracy(model, new_pairs(n, rewritten=rewritten)) for n in LENGTHS}


def accuracy_by_place(model: RecallModel, count: int = 100) -> Float[Tensor, " places"]:
    """The accuracy on the pair at each place of 64: what a model forgets.

    Every key is asked, in a sequence of its own. Where all answers depend on age alone, place 0 is
    the oldest.

    Args:
        model: as trained on keys that are all different.
        count: how many sequences; each is asked 64 times.

    Returns:
        The shares, (64,), in the order in which the pairs were written.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.recall import accuracy_by_place, load_recall
        >>> bool((accuracy_by_place(load_recall(), 20) > 0.8).all())
        True
    """
    keys, values, *_ = new_pairs(LONGEST, count)
    at = [Pairs(keys, values, keys[:, [i]], values[:, [i]]) for i in range(LONGEST)]
    return torch.tensor([accuracy(model, pairs) for pairs in at])


def load_recall() -> RecallModel:
    """Load the model with softmax that was trained on keys that are all different.

    Its layer is a `MultiHeadAttention`, whose `attend` can be exchanged.

    Source:
        This book's own.

    Example:
        >>> import torch
        >>> from attention.trained.recall import load_recall
        >>> keys, values = torch.tensor([[40, 7, 12]]), torch.tensor([[3, 9, 5]])
        >>> load_recall()(keys, values, asked=torch.tensor([[7]])).argmax(-1)
        tensor([[9]])
    """
    return weight_files.load(build(MECHANISMS["softmax"].make), WEIGHTS / "softmax.safetensors")


def measured_recall(mechanism: str, *, rewritten: bool = False) -> dict[int, list[float]]:
    """Read the accuracy of three trained models by the number of pairs, as measured.

    Args:
        mechanism: one of `MECHANISMS`.
        rewritten: whether each key was written twice.

    Returns:
        For each of `LENGTHS` the accuracy on 2,000 new sequences, with seeds 0, 1 and 2.

    Raises:
        ValueError: there is no such mechanism.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.recall import measured_recall
        >>> min(measured_recall("softmax")[64]) > 0.99 > 0.9 > max(measured_recall("linear")[64])
        True
        >>> sum(measured_recall("softmax", rewritten=True)[64]) / 3 < 0.6  # one of two values
        True
    """
    require_mechanism(mechanism)
    task = next(task for task, twice in TASKS.items() if twice == rewritten)
    told = weight_files.told(table())[task][mechanism]
    return {int(n): shares for n, shares in told.items()}


def measured_places(mechanism: str) -> Float[Tensor, " places"]:
    """Read what `accuracy_by_place` came to, on average over three models.

    Args:
        mechanism: one of `MECHANISMS`.

    Returns:
        The shares, (64,), place 0 written first.

    Raises:
        ValueError: there is no such mechanism.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.recall import measured_places
        >>> places = measured_places("window 8")
        >>> bool((places[-8:] > 0.99).all()), bool((places[:-8] < 0.2).all())
        (True, True)
    """
    require_mechanism(mechanism)
    return load_file(table())[mechanism].float()


def require_mechanism(mechanism: str) -> None:
    if mechanism not in MECHANISMS:
        can_be = "; ".join(MECHANISMS)
        raise ValueError(f"there is no mechanism {mechanism!r}; it can be one of: {can_be}")


def table() -> Path:
    return WEIGHTS / "table.safetensors"
