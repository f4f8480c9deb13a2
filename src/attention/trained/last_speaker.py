"""Who spoke last? One layer of attention, five ways to tell it the order, tested on longer talks.

A talk is a row of words: names, other words and question marks. After a name that person speaks. At
a question mark the model says who spoke last: the name that stands nearest before it. The model is
the book's: embedded words, one layer of causal multi-head attention, a linear read-out of the
question mark's row. What differs is where order comes from (`SCHEMES`): nowhere but the causal
mask, from sines and cosines or learned vectors added to the words, from rotary queries and keys, or
from a bias linear in distance.

It learns from talks of 16 words. In a longer talk the answer stands as near as before; only the
past that must be ignored is longer. So what falls is not memory: it is what a scheme makes of
positions and distances that training never had.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_size
from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.multihead import MultiHeadAttention
from attention.positions.learned import LearnedPositions
from attention.positions.linear_bias import LinearBias
from attention.positions.rotary import Rotary
from attention.trained import weight_files
from attention.trained.fitting import build, fit

NAMES = ("ann", "ben", "cara", "dan", "eva", "finn", "gus", "hana")
OTHERS = ("yes", "no", "well", "so", "maybe", "right", "fine", "hm")
QUESTION = "?"
WORDS = (*NAMES, *OTHERS, QUESTION)  # a word's token id is its place here
LENGTH = 16  # words of a talk in training
LENGTHS = (16, 24, 32, 48, 64, 128)  # words of the talks that a model is measured on
SCHEMES = ("causal mask alone", "sinusoidal", "learned", "rotary", "linear bias")
D_MODEL, N_HEADS = 32, 4
BATCH, STEPS, LEARNING_RATE = 128, 600, 0.01
SEED = 0  # is stored
WEIGHTS = Path(__file__).parent / "last_speaker_weights"


class Talks(NamedTuple):
    """Talks of one length, each of which ends with a question mark.

    Attributes:
        token_ids: (batch, seq).
        asked: (batch, seq), True at the question marks.
        speaker: (batch, seq), who spoke last, as a token id: the nearest name, the place itself
            included.
    """

    token_ids: Int64[Tensor, "batch seq"]
    asked: Bool[Tensor, "batch seq"]
    speaker: Int64[Tensor, "batch seq"]


def draw_talks(count: int, length: int, generator: torch.Generator) -> Talks:
    """Draw talks: a name first, a question mark last, and anything between them.

    Of the words between, a quarter are names and a quarter question marks.

    Args:
        count: how many.
        length: words of a talk, at least 2.
        generator: where the random numbers come from.

    Source:
        This book's own.

    Example:
        >>> import torch
        >>> from attention.trained.last_speaker import WORDS, draw_talks
        >>> talks = draw_talks(1, 6, torch.Generator().manual_seed(7))
        >>> " ".join(WORDS[i] for i in talks.token_ids[0])
        'hana eva ? ? fine ?'
        >>> WORDS[talks.speaker[0, -1]]
        'eva'
    """
    require_size("count", count)
    require_size("length", length, least=2)

    def words(among: tuple[str, ...]) -> Int64[Tensor, "count length"]:
        first = WORDS.index(among[0])
        return torch.randint(first, first + len(among), (count, length), generator=generator)

    names, others = words(NAMES), words(OTHERS)
    kind = torch.rand(count, length, generator=generator)
    kind[:, 0], kind[:, -1] = 0, 0.3  # a name, and a question mark
    question = torch.tensor(WORDS.index(QUESTION))
    token_ids = torch.where(kind < 0.25, names, torch.where(kind < 0.5, question, others))
    place = torch.where(token_ids < len(NAMES), torch.arange(length), 0).cummax(1).values
    return Talks(token_ids, token_ids == question, token_ids.gather(1, place))


class LastSpeaker(nn.Module):
    """Embedded words, one layer of causal attention, and a read-out: who spoke last?

    Modules by name: `embedding`; `positions`, where the scheme adds vectors to the words, and an
    nn.Identity where it does not; `attention`, with the scheme's transform or bias;
    and `to_name`, an nn.Linear(d_model, 8). Nothing has a bias.

    Args:
        scheme: one of `SCHEMES`.

    Raises:
        ValueError: there is no such scheme.

    Source:
        This book's own.

    Example:
        >>> import torch
        >>> from attention.trained.last_speaker import LastSpeaker, draw_talks
        >>> talks = draw_talks(3, 64, torch.Generator().manual_seed(0))
        >>> logits, weights = LastSpeaker("rotary")(talks.token_ids)
        >>> logits.shape, weights.shape
        (torch.Size([3, 64, 8]), torch.Size([3, 4, 64, 64]))
    """

    def __init__(self, scheme: str) -> None:
        super().__init__()
        require_scheme(scheme)
        self.scheme = scheme
        self.embedding = TokenEmbedding(len(WORDS), D_MODEL, pad_id=None)
        self.positions: nn.Module = nn.Identity()
        self.attention = MultiHeadAttention(D_MODEL, N_HEADS, bias=False)
        self.to_name = nn.Linear(D_MODEL, len(NAMES), bias=False)
        if scheme == "sinusoidal":
            self.positions = SinusoidalPositionalEncoding(D_MODEL)
        elif scheme == "learned":
            self.positions = LearnedPositions(D_MODEL, LENGTH)
        elif scheme == "rotary":
            self.attention.attend.transform = Rotary(self.attention.d_key)
        elif scheme == "linear bias":
            self.attention.attend.bias = LinearBias(N_HEADS)

    def embed(self, token_ids: Int64[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"]:
        """The words as attention sees them, with what the scheme adds to them."""
        return self.positions(self.embedding(token_ids))

    def forward(
        self, token_ids: Int64[Tensor, "batch seq"], *, last: bool = False
    ) -> tuple[Float[Tensor, "batch query names"], Float[Tensor, "batch heads query seq"]]:
        """Say at every place, or at the last alone, who spoke last.

        Args:
            token_ids: (batch, seq).
            last: asks at the last place only, which spares the other queries of a long talk.

        Returns:
            A logit for each name, (batch, query, names), and the weights (batch, heads, query,
            seq); with `last`, of one query.

        Raises:
            ValueError: the scheme is learned, and the talk longer than `LENGTH`.
        """
        x = self.embed(token_ids)
        output, weights = self.attention(x[:, -1:] if last else x, x, causal=True)
        return self.to_name(output), weights


def train(scheme: str, seed: int, *, steps: int = STEPS) -> LastSpeaker:
    """Train one model: some 5 s on one processor.

    Talks of 16 words are drawn as they are used, and the loss is that of all their question marks.
    The weights are rounded to the half precision in which they are stored.

    Args:
        scheme: one of `SCHEMES`.
        seed: draws the first weights and the talks.
        steps: how many batches of 128 talks.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.last_speaker import train
        >>> train("rotary", seed=0, steps=2).scheme
        'rotary'
    """
    model = build(lambda: LastSpeaker(scheme), seed)
    generator = torch.Generator().manual_seed(seed)

    def loss_at(step: int) -> Tensor:
        token_ids, asked, speaker = draw_talks(BATCH, LENGTH, generator)
        logits, _ = model(token_ids)
        return F.cross_entropy(logits[asked], speaker[asked])

    return fit(model, loss_at, steps=steps, learning_rate=LEARNING_RATE)


def new_talks(length: int, count: int = 1000) -> Talks:
    """Draw new talks of some length to measure on, the same at every call.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.last_speaker import new_talks
        >>> new_talks(64, 50).token_ids.shape
        torch.Size([50, 64])
    """
    return draw_talks(count, length, torch.Generator().manual_seed(10**6 + length))


@torch.no_grad()
def accuracy(model: LastSpeaker, talks: Talks) -> float:
    """The share of the talks of which the last question is answered right.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.last_speaker import accuracy, load_speaker, new_talks
        >>> model = load_speaker("linear bias")
        >>> accuracy(model, new_talks(16)) > 0.9, accuracy(model, new_talks(64)) > 0.9
        (True, True)
    """
    logits, _ = model(talks.token_ids, last=True)
    return (logits[:, 0].argmax(-1) == talks.speaker[:, -1]).double().mean().item()


def accuracy_by_length(model: LastSpeaker) -> dict[int, float]:
    """The accuracy on 1,000 new talks of each of `LENGTHS`, where the model can be asked at all.

    Source:
        This book's own; Press et al. 2022, figure 1, has models of both kinds on longer texts.

    Example:
        >>> from attention.trained.last_speaker import accuracy_by_length, load_speaker
        >>> list(accuracy_by_length(load_speaker("learned")))
        [16]
    """
    lengths = (LENGTH,) if model.scheme == "learned" else LENGTHS
    return {length: accuracy(model, new_talks(length)) for length in lengths}


def store_speaker(model: LastSpeaker, accuracy: dict[int, float]) -> None:
    """Write the weights of a model in half precision, which `train` has rounded them to."""
    told = {length: round(share, 4) for length, share in accuracy.items()}
    weight_files.write(path(model.scheme), weight_files.half(model), accuracy=told)


def load_speaker(scheme: str) -> LastSpeaker:
    """Load a trained model, in evaluation mode.

    Args:
        scheme: one of `SCHEMES`.

    Raises:
        ValueError: there is no such scheme.

    Source:
        This book's own.

    Example:
        >>> import torch
        >>> from attention.trained.last_speaker import NAMES, WORDS, load_speaker
        >>> talk = "ann yes ben well so ?".split()
        >>> logits, _ = load_speaker("rotary")(torch.tensor([[WORDS.index(word) for word in talk]]))
        >>> NAMES[logits[0, -1].argmax()]
        'ben'
    """
    require_scheme(scheme)
    return weight_files.load(build(lambda: LastSpeaker(scheme)), path(scheme))


def measured_speaker(scheme: str) -> dict[int, float]:
    """Read the accuracy of a stored model by length, on 1,000 new talks each, as measured.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.last_speaker import measured_speaker
        >>> measured_speaker("rotary")[16] > 0.99
        True
    """
    require_scheme(scheme)
    told = weight_files.told(path(scheme))["accuracy"]
    return {int(length): share for length, share in told.items()}


def require_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        can_be = ", ".join(map(repr, SCHEMES[:-1])) + f" or {SCHEMES[-1]!r}"
        raise ValueError(f"there is no scheme {scheme!r}; it can be {can_be}")


def path(scheme: str) -> Path:
    return WEIGHTS / f"{scheme.replace(' ', '-')}.safetensors"
