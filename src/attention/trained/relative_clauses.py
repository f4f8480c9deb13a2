"""Relative clauses: who did what to whom at each verb of a sentence that has others inside it.

"The dog that the cat chased saw the bird": who chased is the cat and whom the dog, who saw is the
dog and whom the bird. The noun nearest to "saw" is the cat; that it belongs to the clause has to be
found out before the verb can pass over it.

The words are those of `attention.trained.grammar`, and "that". A sentence is active or passive, and
each of its two nouns has a clause of one of three kinds, or none:

    subject   the dog that chased the cat          the noun acts in the clause
    passive   the dog that was chased by the cat   it is done to the noun
    object    the dog that the cat chased          so it is here, and the clause's noun comes first

The model is an encoder of one layer or of two, in pre-norm order, with two linear read-outs of the
row of each token. In one layer a verb looks at words and their places alone; in the second of two
it looks at what the words have found out about each other. The feed-forward layer of the one is
wider, so that both models have about as many parameters: 23,362 and 23,326.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.masks import padding_mask
from attention.text import Vocabulary
from attention.trained import weight_files
from attention.trained.fitting import build, fit
from attention.trained.grammar import ADJECTIVES, NOUNS, PARTICIPLES, VERBS
from attention.trained.without_parts import without_parts
from attention.transformer.encoder import Encoder

SMALL = ("the", "a", "an", "was", "by", "that")
VOCABULARY = Vocabulary([[*NOUNS, *ADJECTIVES, *VERBS, *PARTICIPLES, *SMALL]])
CLAUSES = ("subject", "passive", "object")
MAIN = "main"
LONGEST = 24  # tokens; the longest that is drawn has 23
D_MODEL, N_HEADS = 32, 2
D_FF = {1: 196, 2: 64}  # by number of layers
BATCH, STEPS, LEARNING_RATE = 64, 2500, 0.01
SEEDS = {1: 0, 2: 0}  # which seed is stored, by number of layers
NO_VERB = -100  # stands for the answer where no verb is; torch's cross entropy leaves it out
WEIGHTS = Path(__file__).parent / "relative_weights"


class Verb(NamedTuple):
    """A verb, and where the answers to its two questions stand.

    Attributes:
        place: the place of the verb among the words of its sentence.
        who: the place of the noun that acts.
        whom: the place of the noun that it is done to.
        kind: "main", or which of `CLAUSES` the verb stands in.
    """

    place: int
    who: int
    whom: int
    kind: str


class Clauses(NamedTuple):
    """A sentence with relative clauses.

    Attributes:
        tokens: its words.
        verbs: its verbs, from left to right.
    """

    tokens: list[str]
    verbs: list[Verb]


class ClauseBatch(NamedTuple):
    """Sentences as numbers.

    Attributes:
        token_ids: (batch, seq), padded.
        who: (batch, seq), at each verb the id of the word that acts; `NO_VERB` elsewhere.
        whom: (batch, seq), at each verb the id of the word that it is done to.
    """

    token_ids: Int64[Tensor, "batch seq"]
    who: Int64[Tensor, "batch seq"]
    whom: Int64[Tensor, "batch seq"]


def draw_clauses(rng: random.Random) -> Clauses:
    """Draw one sentence. Half of the nouns that may have a clause have one.

    Args:
        rng: where the choices come from.

    Source:
        This book's own.

    Example:
        >>> import random
        >>> from attention.trained.relative_clauses import draw_clauses
        >>> sentence = draw_clauses(random.Random(0))
        >>> " ".join(sentence.tokens)
        'the lamp that a cook drew saw the nurse'
        >>> [(sentence.tokens[verb.place], verb.kind) for verb in sentence.verbs]
        [('drew', 'object'), ('saw', 'main')]
    """
    tokens: list[str] = []
    verbs: list[Verb] = []

    def add_noun() -> int:
        words = [rng.choice(ADJECTIVES)] if rng.random() < 0.4 else []
        words.append(rng.choice((*NOUNS, Vocabulary.unk)))
        tokens.extend([rng.choice(("the", "an" if words[0][0] in "aeiou" else "a")), *words])
        return len(tokens) - 1

    def add_verb(*, passive: bool) -> int:
        verb = rng.choice(list(VERBS))
        tokens.extend(["was", VERBS[verb], "by"] if passive else [verb])
        return len(tokens) - 1 - passive

    def add_noun_with_clause() -> int:
        noun = add_noun()
        if rng.random() < 0.5:
            tokens.append("that")
            kind = rng.choice(CLAUSES)
            if kind == "object":
                other = add_noun()
                place = add_verb(passive=False)
            else:
                place = add_verb(passive=kind == "passive")
                other = add_noun()
            who, whom = (noun, other) if kind == "subject" else (other, noun)
            verbs.append(Verb(place, who, whom, kind))
        return noun

    first = add_noun_with_clause()
    passive = rng.random() < 0.5
    place = add_verb(passive=passive)
    second = add_noun_with_clause()
    who, whom = (second, first) if passive else (first, second)
    verbs.append(Verb(place, who, whom, MAIN))
    return Clauses(tokens, sorted(verbs))


def encode_clauses(sentences: list[Clauses]) -> ClauseBatch:
    """Look up the ids of the words, and of the answers at each verb, all (batch, seq).

    Args:
        sentences: as `draw_clauses` returns them.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.relative_clauses import VOCABULARY, Clauses, Verb, encode_clauses
        >>> tokens = "the dog that the cat chased saw a bird".split()
        >>> verbs = [Verb(5, who=4, whom=1, kind="object"), Verb(6, who=1, whom=8, kind="main")]
        >>> batch = encode_clauses([Clauses(tokens, verbs)])
        >>> batch.who[0, :5], VOCABULARY.decode(batch.who[0, 5:7])
        (tensor([-100, -100, -100, -100, -100]), ['cat', 'dog'])
    """
    token_ids = VOCABULARY.encode_batch([sentence.tokens for sentence in sentences])
    who, whom = torch.full((2, *token_ids.shape), NO_VERB)
    for i, sentence in enumerate(sentences):
        for verb in sentence.verbs:
            who[i, verb.place] = token_ids[i, verb.who]
            whom[i, verb.place] = token_ids[i, verb.whom]
    return ClauseBatch(token_ids, who, whom)


def answer_keys(
    sentences: list[Clauses],
) -> tuple[Bool[Tensor, "batch seq seq"], Bool[Tensor, "batch seq seq"]]:
    """Where the answers stand, as `aligned_score` wants its keys: of who, and of whom.

    Args:
        sentences: as `draw_clauses` returns them.

    Returns:
        Two of (batch, query, key), True where the query is a verb and the key its answer.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.relative_clauses import Clauses, Verb, answer_keys
        >>> verbs = [Verb(5, who=4, whom=1, kind="object"), Verb(6, who=1, whom=8, kind="main")]
        >>> tokens = "the dog that the cat chased saw a bird".split()
        >>> who, whom = answer_keys([Clauses(tokens, verbs)])
        >>> who.nonzero().tolist(), whom.nonzero().tolist()
        ([[0, 5, 4], [0, 6, 1]], [[0, 5, 1], [0, 6, 8]])
    """
    seq = max(len(sentence.tokens) for sentence in sentences)
    who, whom = torch.zeros(2, len(sentences), seq, seq, dtype=torch.bool)
    for i, sentence in enumerate(sentences):
        for verb in sentence.verbs:
            who[i, verb.place, verb.who] = True
            whom[i, verb.place, verb.whom] = True
    return who, whom


class ClauseAnswer(NamedTuple):
    """What `RelativeClauses` returns: logits of every token's row, and each layer's weights."""

    who: Float[Tensor, "batch seq vocab_size"]
    whom: Float[Tensor, "batch seq vocab_size"]
    weights: list[Float[Tensor, "batch heads query key"]] | None


class RelativeClauses(nn.Module):
    """Answer who and whom at each verb.

    Modules by name: `embedding`, `positional_encoding`, `encoder`, an `Encoder` in pre-norm order,
    and the read-outs `to_who` and `to_whom`, each an nn.Linear(d_model, vocab_size).

    Args:
        n_layers: how many layers the encoder has, 1 or 2.

    Raises:
        ValueError: for another number of layers.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.relative_clauses import (
        ...     RelativeClauses, encode_clauses, new_clauses
        ... )
        >>> batch = encode_clauses(new_clauses(3))
        >>> answer = RelativeClauses(n_layers=2)(batch.token_ids)
        >>> answer.who.shape[:2] == batch.who.shape, len(answer.weights)
        (True, 2)
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        require_layers(n_layers)
        vocab_size = len(VOCABULARY)
        self.embedding = TokenEmbedding(vocab_size, D_MODEL, pad_id=VOCABULARY.pad_id)
        self.positional_encoding = SinusoidalPositionalEncoding(D_MODEL, LONGEST)
        self.encoder = Encoder(D_MODEL, N_HEADS, D_FF[n_layers], n_layers=n_layers, norm_first=True)
        self.to_who = nn.Linear(D_MODEL, vocab_size)
        self.to_whom = nn.Linear(D_MODEL, vocab_size)

    def forward(
        self, token_ids: Int64[Tensor, "batch seq"], *, need_weights: bool = True
    ) -> ClauseAnswer:
        """Read the sentences, and answer at every token; only the answers at verbs mean something.

        Args:
            token_ids: (batch, seq), at most `LONGEST` tokens, padded.
            need_weights: as in `MultiHeadAttention.forward`.
        """
        mask = padding_mask(token_ids, VOCABULARY.pad_id)
        x = self.positional_encoding(self.embedding(token_ids))
        x, weights = self.encoder(x, mask, need_weights=need_weights)
        return ClauseAnswer(self.to_who(x), self.to_whom(x), weights)


def require_layers(n_layers: int) -> None:
    if n_layers not in D_FF:
        raise ValueError(f"n_layers must be {' or '.join(map(str, D_FF))}, got {n_layers}")


def new_clauses(count: int = 2000) -> list[Clauses]:
    """Draw new sentences to measure on, the same at every call.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.relative_clauses import new_clauses
        >>> " ".join(new_clauses(3)[2].tokens)
        'the teacher that a cup hid was chased by a girl that a red fox found'
    """
    rng = random.Random(10**6)
    return [draw_clauses(rng) for _ in range(count)]


def train_clauses(
    n_layers: int, seed: int, *, steps: int = STEPS, without: Sequence[str] = ()
) -> RelativeClauses:
    """Train one model: some 30 s on one processor with two layers.

    The weights are rounded to the half precision in which they are stored.

    Args:
        n_layers: how many layers, 1 or 2.
        seed: draws the first weights and the sentences.
        steps: how many batches of 64 sentences.
        without: parts that it never has, as `without_parts` names them.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.relative_clauses import train_clauses
        >>> train_clauses(n_layers=2, seed=0, steps=2).training
        False
    """
    model = without_parts(build(lambda: RelativeClauses(n_layers), seed), *without)
    rng = random.Random(seed)

    def loss_at(step: int) -> Tensor:
        batch = encode_clauses([draw_clauses(rng) for _ in range(BATCH)])
        answer = model(batch.token_ids, need_weights=False)
        for_who = F.cross_entropy(answer.who.mT, batch.who)
        return for_who + F.cross_entropy(answer.whom.mT, batch.whom)

    return fit(model, loss_at, steps=steps, learning_rate=LEARNING_RATE)


@torch.no_grad()
def accuracy_by_kind(model: RelativeClauses, sentences: list[Clauses]) -> dict[str, float]:
    """The share of verbs of which both answers are right, for each kind of verb and for "all".

    Args:
        model: what answers.
        sentences: as `new_clauses` returns them; each kind must occur.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.relative_clauses import (
        ...     accuracy_by_kind, load_clauses, new_clauses
        ... )
        >>> right = accuracy_by_kind(load_clauses(2), new_clauses(500))
        >>> list(right), min(right.values()) > 0.98
        (['main', 'subject', 'passive', 'object', 'all'], True)
    """
    batch = encode_clauses(sentences)
    answer = model(batch.token_ids, need_weights=False)
    right = (answer.who.argmax(-1) == batch.who) & (answer.whom.argmax(-1) == batch.whom)
    verbs: dict[str, list[bool]] = {kind: [] for kind in (MAIN, *CLAUSES)}
    for i, sentence in enumerate(sentences):
        for verb in sentence.verbs:
            verbs[verb.kind].append(right[i, verb.place].item())
    verbs["all"] = [each for kind in verbs.values() for each in kind]
    return {kind: sum(each) / len(each) for kind, each in verbs.items()}


def store_clauses(model: RelativeClauses, right: dict[str, float]) -> None:
    """Write the weights of a model in half precision, which training has rounded them to."""
    accuracy = {kind: round(share, 4) for kind, share in right.items()}
    weight_files.write(path(len(model.encoder.layers)), weight_files.half(model), accuracy=accuracy)


def load_clauses(n_layers: int = 2) -> RelativeClauses:
    """Load a trained model, in evaluation mode.

    Args:
        n_layers: one of `SEEDS`.

    Raises:
        ValueError: for another number of layers.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.relative_clauses import VOCABULARY, load_clauses
        >>> tokens = "the dog that the cat chased saw a bird".split()
        >>> answer = load_clauses()(VOCABULARY.encode_batch([tokens]))
        >>> for place in (5, 6):
        ...     best = [x[0, place].argmax().item() for x in (answer.who, answer.whom)]
        ...     print(tokens[place], VOCABULARY.decode(best))
        chased ['cat', 'dog']
        saw ['dog', 'bird']
    """
    return weight_files.load(build(lambda: RelativeClauses(n_layers)), path(n_layers))


def measured_clauses(n_layers: int = 2) -> dict[str, float]:
    """Read the `accuracy_by_kind` of a stored model on 2,000 new sentences, from its file.

    Raises:
        ValueError: as for `load_clauses`.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.relative_clauses import measured_clauses
        >>> measured_clauses(1)["all"] < 0.9, measured_clauses(2)["all"] > 0.99
        (True, True)
    """
    require_layers(n_layers)
    return weight_files.told(path(n_layers))["accuracy"]


def path(n_layers: int) -> Path:
    return WEIGHTS / f"{n_layers}-layer.safetensors"
