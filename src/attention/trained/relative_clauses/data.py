"""Sentences with relative clauses, drawn from a small grammar, and the answers at each verb.

The words are those of `attention.trained.who_and_whom`, with "that" added. A sentence is active or
passive, and each of its two nouns has a clause of one of three kinds, or none:

    subject   the dog that chased the cat          the noun acts in the clause
    passive   the dog that was chased by the cat   it is done to the noun
    object    the dog that the cat chased          so it is here, and the clause's noun comes first
"""

import random
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from attention.text import Vocabulary
from attention.trained.who_and_whom.data import ADJECTIVES, NOUNS, PARTICIPLES, VERBS

SMALL = ("the", "a", "an", "was", "by", "that")
VOCABULARY = Vocabulary([[*NOUNS, *ADJECTIVES, *VERBS, *PARTICIPLES, *SMALL]])
CLAUSES = ("subject", "passive", "object")
MAIN = "main"
LONGEST = 24  # tokens; the longest that is drawn has 23
NO_VERB = -100  # the answer where there is no verb; torch's cross entropy leaves it out


class Verb(NamedTuple):
    """A verb, and the positions of the answers to its two questions.

    Attributes:
        place: the position of the verb among the words of its sentence.
        who: the position of the noun that acts.
        whom: the position of the noun that is acted on.
        kind: "main", or the one of `CLAUSES` that the verb is in.
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
        whom: (batch, seq), at each verb the id of the word that is acted on.
    """

    token_ids: Int64[Tensor, "batch seq"]
    who: Int64[Tensor, "batch seq"]
    whom: Int64[Tensor, "batch seq"]


def draw_clauses(rng: random.Random) -> Clauses:
    """Draw one sentence. Half of the nouns that may have a clause have one.

    Args:
        rng: where the choices come from.

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
    first = add_noun_with_clause(rng, tokens, verbs)
    passive = rng.random() < 0.5
    place = add_verb(rng, tokens, passive=passive)
    second = add_noun_with_clause(rng, tokens, verbs)
    who, whom = (second, first) if passive else (first, second)
    verbs.append(Verb(place, who, whom, MAIN))
    return Clauses(tokens, sorted(verbs))


def add_noun(rng: random.Random, tokens: list[str]) -> int:
    """Draw a noun with its article, append them to the tokens and return the noun's position."""
    words = [rng.choice(ADJECTIVES)] if rng.random() < 0.4 else []
    words.append(rng.choice((*NOUNS, Vocabulary.unk)))
    tokens.extend([rng.choice(("the", "an" if words[0][0] in "aeiou" else "a")), *words])
    return len(tokens) - 1


def add_verb(rng: random.Random, tokens: list[str], *, passive: bool) -> int:
    verb = rng.choice(list(VERBS))
    tokens.extend(["was", VERBS[verb], "by"] if passive else [verb])
    return len(tokens) - 1 - passive


def add_noun_with_clause(rng: random.Random, tokens: list[str], verbs: list[Verb]) -> int:
    noun = add_noun(rng, tokens)
    if rng.random() < 0.5:
        tokens.append("that")
        kind = rng.choice(CLAUSES)
        if kind == "object":
            other = add_noun(rng, tokens)
            place = add_verb(rng, tokens, passive=False)
        else:
            place = add_verb(rng, tokens, passive=kind == "passive")
            other = add_noun(rng, tokens)
        who, whom = (noun, other) if kind == "subject" else (other, noun)
        verbs.append(Verb(place, who, whom, kind))
    return noun


def encode_clauses(sentences: list[Clauses]) -> ClauseBatch:
    """Look up the ids of the words, and of the answers at each verb, all (batch, seq).

    Args:
        sentences: as `draw_clauses` returns them.

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
    """Where the answers are, in the form that `aligned_score` takes: those of who, and of whom.

    Args:
        sentences: as `draw_clauses` returns them.

    Returns:
        Two tensors (batch, query, key), True where the query is a verb and the key is its answer.

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


def new_clauses(count: int = 2000) -> list[Clauses]:
    """Draw new sentences to measure on, the same at every call.

    Example:
        >>> from attention.trained.relative_clauses import new_clauses
        >>> " ".join(new_clauses(3)[2].tokens)
        'the teacher that a cup hid was chased by a girl that a red fox found'
    """
    rng = random.Random(10**6)
    return [draw_clauses(rng) for _ in range(count)]
