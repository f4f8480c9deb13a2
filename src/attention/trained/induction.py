"""Induction: what followed a token last time follows it again. One layer falls short, two do it.

A sequence of random tokens holds a part that comes twice. The second time around, each next token
is known to whoever finds the place where the current token stood before and reads what came after
it. The model has attention alone: embedding and learned positions, one or two layers of causal
multi-head attention, each added to what enters it, and a linear read-out. There is no feed-forward
layer, no normalisation and no bias, so that a logit is a sum over paths through the heads, and the
product of two heads' matrices is what one hands to the other.

Two heads in a row find the place. A head of the first layer copies into each token the one before
it (a previous-token head). A head of the second asks for the key whose copy is the current token,
and that key is the token to predict (an induction head). `attention.trained.head_scores` finds
both kinds.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_size
from attention.multihead import MultiHeadAttention
from attention.positions.learned import LearnedPositions
from attention.trained import weight_files
from attention.trained.ablation import switch_off
from attention.trained.fitting import build, fit

SYMBOLS = "abcdefghijklmnopqrstuvwxyz012345"  # how the tokens are shown, in the order of their ids
VOCAB_SIZE = len(SYMBOLS)
LENGTH = 32  # tokens of a sequence
SHORTEST, LONGEST = 4, 12  # tokens of the part that comes twice
D_MODEL, N_HEADS = 32, 2
BATCH, STEPS, LEARNING_RATE = 128, 1200, 0.01
# Which seed is stored, by number of layers. Of two layers all of seeds 0 to 4 are right; this one's
# first layer has the clearest previous-token head, and no second head that does half of its work.
SEEDS = {1: 0, 2: 3}
WEIGHTS = Path(__file__).parent / "induction_weights"


class Sequences(NamedTuple):
    """Sequences of tokens in which a part comes twice.

    Attributes:
        token_ids: (batch, seq).
        determined: (batch, seq), True where the next token is known from the first time around: at
            the tokens of the second copy, but for its last.
    """

    token_ids: Int64[Tensor, "batch seq"]
    determined: Bool[Tensor, "batch seq"]


def draw_sequences(count: int, generator: torch.Generator) -> Sequences:
    """Draw sequences of 32 tokens in which a part of 4 to 12 tokens comes twice.

    No token comes twice but for that part, so that a token that has come before says where to look.
    The part's length and the places of its two copies are drawn anew for each sequence, so that no
    one distance leads from the second copy to the first.

    Args:
        count: how many.
        generator: where the random numbers come from.

    Source:
        This book's own, after the repeated random tokens of Olsson et al. 2022.

    Example:
        >>> import torch
        >>> from attention.trained.induction import draw_sequences
        >>> sequences = draw_sequences(100, torch.Generator().manual_seed(0))
        >>> sequences.token_ids.shape, sequences.determined.sum(1).aminmax()
        (torch.Size([100, 32]), torch.return_types.aminmax(
        min=tensor(3),
        max=tensor(11)))
    """
    require_size("count", count)

    def up_to(most: Tensor) -> Int64[Tensor, "count 1"]:
        return (torch.rand(count, 1, generator=generator) * (most + 1)).long()

    part = SHORTEST + up_to(torch.tensor(LONGEST - SHORTEST))
    first = up_to(LENGTH - 2 * part)  # where each copy begins
    second = first + part + up_to(LENGTH - 2 * part - first)
    place = torch.arange(LENGTH)
    in_second = (place >= second) & (place < second + part)
    # The tokens of a shuffled vocabulary in turn; the second copy interrupts them.
    source = torch.where(in_second, place - second + first, place - part * (place >= second))
    shuffled = torch.rand(count, VOCAB_SIZE, generator=generator).argsort(1)
    return Sequences(shuffled.gather(1, source), in_second & (place < second + part - 1))


def encode(text: str) -> Int64[Tensor, "1 seq"]:
    """Read symbols as tokens: a to z are 0 to 25, and the digits 0 to 5 are 26 to 31.

    Args:
        text: at least one symbol, at most 32.

    Returns:
        Token ids, (1, seq).

    Raises:
        ValueError: there is another symbol in it, or their number does not fit.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.induction import decode, encode
        >>> encode("cab5"), decode(encode("cab5")[0])
        (tensor([[ 2,  0,  1, 31]]), 'cab5')
    """
    if not 1 <= len(text) <= LENGTH:
        raise ValueError(f"text must have 1 to {LENGTH} symbols, got {len(text)}")
    if unknown := [symbol for symbol in text if symbol not in SYMBOLS]:
        raise ValueError(
            f"text holds {unknown[0]!r}, which is no token; the tokens are a to z and 0 to 5"
        )
    return torch.tensor([[SYMBOLS.index(symbol) for symbol in text]])


def decode(token_ids: Int64[Tensor, " seq"]) -> str:
    """Show tokens as symbols.

    Args:
        token_ids: (seq,), each below 32.

    Source:
        This book's own.

    Example:
        >>> import torch
        >>> from attention.trained.induction import decode
        >>> decode(torch.tensor([7, 8]))
        'hi'
    """
    return "".join(SYMBOLS[i] for i in token_ids.tolist())


class AttentionOnly(nn.Module):
    """Layers of causal self-attention, each added to what enters it, and a read-out.

    Modules by name: `embedding`, an nn.Embedding; `positions`, learned; `layers`, of
    `MultiHeadAttention`; and `to_next`, an nn.Linear(d_model, vocab_size). Nothing has a bias.

    Args:
        n_layers: how many layers of attention.

    Source:
        Elhage et al. 2021, "Model Simplifications": without feed-forward layers, biases and layer
        norm. Their positions reach queries and keys alone; here they are added to the rows, so that
        the values hold them too.

    Example:
        >>> import torch
        >>> from attention.trained.induction import AttentionOnly, draw_sequences
        >>> sequences = draw_sequences(3, torch.Generator().manual_seed(0))
        >>> logits, weights = AttentionOnly(n_layers=2)(sequences.token_ids)
        >>> logits.shape, len(weights), weights[0].shape
        (torch.Size([3, 32, 32]), 2, torch.Size([3, 2, 32, 32]))
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        require_size("n_layers", n_layers)
        self.embedding = nn.Embedding(VOCAB_SIZE, D_MODEL)
        self.positions = LearnedPositions(D_MODEL, LENGTH)
        self.layers = nn.ModuleList(
            MultiHeadAttention(D_MODEL, N_HEADS, bias=False) for _ in range(n_layers)
        )
        self.to_next = nn.Linear(D_MODEL, VOCAB_SIZE, bias=False)

    def forward(
        self, token_ids: Int64[Tensor, "batch seq"]
    ) -> tuple[Float[Tensor, "batch seq vocab_size"], list[Float[Tensor, "batch heads seq seq"]]]:
        """Predict the token after each.

        Args:
            token_ids: (batch, seq), at most `LENGTH` tokens.

        Returns:
            A logit for each token that may come next, (batch, seq, vocab_size), and the weights
            (batch, heads, seq, seq) of each layer.
        """
        x = self.positions(self.embedding(token_ids))
        weights = []
        for layer in self.layers:
            output, layer_weights = layer(x, causal=True)
            x = x + output
            weights.append(layer_weights)
        return self.to_next(x), weights


def train(
    n_layers: int,
    seed: int,
    *,
    steps: int = STEPS,
    watch: Callable[[int, float, AttentionOnly], None] | None = None,
) -> AttentionOnly:
    """Train one model: some 20 s on one processor with two layers.

    Sequences are drawn as they are used, and the loss is that of the determined tokens alone. The
    weights are rounded to the half precision in which they are stored.

    Args:
        n_layers: how many layers of attention.
        seed: draws the first weights and the sequences.
        steps: how many batches of 128 sequences.
        watch: called before each step with its number, from 0, the loss of its batch and the model,
            which it may read and not change.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.induction import train
        >>> len(train(n_layers=2, seed=0, steps=2).layers)
        2
    """
    model = build(lambda: AttentionOnly(n_layers), seed)
    generator = torch.Generator().manual_seed(seed)

    def loss_at(step: int) -> Tensor:
        token_ids, determined = draw_sequences(BATCH, generator)
        logits, _ = model(token_ids)
        loss = F.cross_entropy(logits[determined], token_ids.roll(-1, 1)[determined])
        if watch is not None:
            watch(step, loss.item(), model)
        return loss

    return fit(model, loss_at, steps=steps, learning_rate=LEARNING_RATE)


def new_sequences(count: int = 4000) -> Sequences:
    """Draw new sequences to measure on, the same at every call.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.induction import new_sequences
        >>> new_sequences(50).token_ids.shape
        torch.Size([50, 32])
    """
    return draw_sequences(count, torch.Generator().manual_seed(10**6))


@torch.no_grad()
def accuracy(model: AttentionOnly, sequences: Sequences) -> float:
    """The share of the determined next tokens that the model puts first.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.induction import accuracy, load_induction, new_sequences
        >>> one, two = (accuracy(load_induction(n), new_sequences(500)) for n in (1, 2))
        >>> one < 0.2, two > 0.99
        (True, True)
    """
    token_ids, determined = sequences
    right = model(token_ids)[0].argmax(-1) == token_ids.roll(-1, 1)
    return right[determined].float().mean().item()


def without_head(model: AttentionOnly, layer: int, head: int) -> AttentionOnly:
    """Copy the model with one head switched off, by the gate of its layer.

    Args:
        model: it is left as it is.
        layer: which layer, from 0.
        head: which of its heads, from 0.

    Raises:
        ValueError: there is no such layer or head.

    Source:
        This book's own; Michel et al. 2019 (§2.3) mask heads one at a time.

    Example:
        >>> from attention.trained.induction import (
        ...     accuracy, load_induction, new_sequences, without_head
        ... )
        >>> model, sequences = load_induction(2), new_sequences(500)
        >>> min(accuracy(without_head(model, 0, head), sequences) for head in (0, 1)) < 0.2
        True
    """
    if not 0 <= layer < len(model.layers):
        raise ValueError(f"layer={layer} must be from 0 to {len(model.layers) - 1}")
    model = copy.deepcopy(model)
    switch_off(model.layers[layer], head)
    return model


@torch.no_grad()
def k_composition(
    first: MultiHeadAttention, second: MultiHeadAttention
) -> Float[Tensor, "first_heads second_heads"]:
    """How much of what each head of one layer writes each head of a later one reads as its keys.

    A head writes W_OV·x for each x that it looks at, W_OV = W_O·W_V, and scores a key by
    x_queryᵀ·W_QK·x_key, W_QK = W_Qᵀ·W_K. The score of a pair is ‖W_QK·W_OV‖ / (‖W_QK‖·‖W_OV‖), with
    Frobenius norms: 0 where the later head reads nothing of it, and at most 1. Random matrices have
    a score too (`random_composition`).

    Args:
        first: the earlier layer. Biases are left out.
        second: the later layer, of the same d_model.

    Returns:
        The scores, (heads of `first`, heads of `second`).

    Raises:
        ValueError: the two differ in d_model.

    Source:
        Elhage et al. 2021, "Three Kinds of Composition" for the kinds, "Analyzing a Two-Layer
        Model" for the number.

    Example:
        >>> from attention.trained.induction import k_composition, load_induction
        >>> model = load_induction(2)
        >>> k_composition(*model.layers).shape
        torch.Size([2, 2])
    """
    if first.d_model != second.d_model:
        raise ValueError(
            f"first and second must have one d_model, got {first.d_model} and {second.d_model}"
        )
    # Rows of w_q, w_k and w_v belong to a head, and columns of w_o: (heads, d_key, d_model).
    w_v, w_o = (w.unflatten(0, (first.n_heads, -1)) for w in (first.w_v.weight, first.w_o.weight.T))
    w_q, w_k = (w.weight.unflatten(0, (second.n_heads, -1)) for w in (second.w_q, second.w_k))
    w_ov, w_qk = w_o.mT @ w_v, w_q.mT @ w_k  # (heads, d_model, d_model)
    product = w_qk[None] @ w_ov[:, None]  # (first_heads, second_heads, d_model, d_model)
    norm = torch.linalg.matrix_norm
    return norm(product) / (norm(w_qk)[None] * norm(w_ov)[:, None])


def random_composition(draws: int = 100) -> tuple[float, float]:
    """The mean and the standard deviation of `k_composition` for layers that were never trained.

    Args:
        draws: how many pairs of new layers, of d_model 32 with 2 heads.

    Source:
        Elhage et al. 2021, "Analyzing a Two-Layer Model", subtract what random matrices give; here
        the layers are drawn as the model's are at its start.

    Example:
        >>> from attention.trained.induction import random_composition
        >>> mean, deviation = random_composition(20)
        >>> 0.1 < mean < 0.3, deviation < 0.02
        (True, True)
    """
    require_size("draws", draws)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        pairs = [AttentionOnly(2).layers for _ in range(draws)]
    scores = torch.stack([k_composition(*pair) for pair in pairs])
    return scores.mean().item(), scores.std().item()


def store_induction(model: AttentionOnly, accuracy: float) -> None:
    """Write the weights of a model in half precision, which `train` has rounded them to."""
    weight_files.write(
        path(len(model.layers)), weight_files.half(model), accuracy=round(accuracy, 4)
    )


def load_induction(n_layers: int = 2) -> AttentionOnly:
    """Load a trained model, in evaluation mode.

    Args:
        n_layers: one of `SEEDS`.

    Raises:
        ValueError: no weights are stored for that many layers.

    Source:
        This book's own.

    Example:
        >>> import torch
        >>> from attention.trained.induction import load_induction
        >>> logits, _ = load_induction()(torch.tensor([[7, 3, 9, 21, 4, 15, 7, 3]]))
        >>> logits[0, -1].argmax().item()  # after 3 came 9
        9
    """
    require_stored(n_layers)
    return weight_files.load(build(lambda: AttentionOnly(n_layers)), path(n_layers))


def measured_induction(n_layers: int = 2) -> float:
    """Read the accuracy of a stored model, on 4,000 new sequences, as training measured it.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.induction import measured_induction
        >>> measured_induction(2) > 0.99
        True
    """
    return weight_files.told(path(n_layers))["accuracy"]


def require_stored(n_layers: int) -> None:
    if n_layers not in SEEDS:
        can_be = " or ".join(map(str, SEEDS))
        raise ValueError(f"no weights are stored for n_layers={n_layers}; it can be {can_be}")


def path(n_layers: int) -> Path:
    return WEIGHTS / f"{n_layers}-layer.safetensors"
