"""Sentences with one verb or two: each verb asks for its own who and whom, among the same words.

"the cat saw the dog and the dog chased the other cat": two clauses of the grammar of
`who_and_whom`, joined by "and". Where a sentence has one verb, "a noun near the beginning" is an
answer, whoever asks. With two, nothing but the query says whose answer is wanted.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

import torch

from attention.text import Vocabulary
from attention.trained.who_and_whom.data import (
    ALL_VERBS,
    GRAMMARS,
    NOBODY,
    WORDS,
    Batch,
    draw_clause,
)

AND = "and"
VOCABULARY = Vocabulary([[*WORDS, AND, NOBODY]])
LONGEST = 34  # tokens; the longest that is drawn has 32
TWO = 0.6  # the share of sentences with two clauses


class Verb(NamedTuple):
    """A verb, and where the answers to its two questions stand.

    Attributes:
        place: the place of the verb among the words of its sentence.
        who: the place of the noun that acts.
        whom: the place of the noun that it is done to; None where there is none.

    Example:
        >>> from attention.trained.two_verbs import Verb
        >>> Verb(2, who=1, whom=4)
        Verb(place=2, who=1, whom=4)
    """

    place: int
    who: int
    whom: int | None


class TwoVerbs(NamedTuple):
    """A sentence with one verb or two.

    Attributes:
        tokens: its words.
        verbs: its verbs, from left to right.

    Example:
        >>> from attention.trained.two_verbs import TwoVerbs, Verb
        >>> TwoVerbs("birds sing at dawn".split(), [Verb(1, who=0, whom=None)]).answers
        [('birds', 'nobody')]
    """

    tokens: list[str]
    verbs: list[Verb]

    @property
    def answers(self) -> list[tuple[str, str]]:
        """The words themselves, who and whom of each verb."""
        return [
            (self.tokens[who], NOBODY if whom is None else self.tokens[whom])
            for _, who, whom in self.verbs
        ]


def draw_two_verbs(rng: random.Random, *, d_model: int = 8) -> TwoVerbs:
    """Draw one sentence: six in ten have two verbs.

    Args:
        rng: where the choices come from.
        d_model: the width that is to learn it, one of `GRAMMARS` of `who_and_whom`, which says
            whether there are passives and places.

    Example:
        >>> import random
        >>> from attention.trained.two_verbs import draw_two_verbs
        >>> sentence = draw_two_verbs(random.Random(10**6))
        >>> " ".join(sentence.tokens)
        'the bird found the red ball and an other bell hid the cook'
        >>> sentence.answers
        [('bird', 'ball'), ('bell', 'cook')]
    """
    passive, places = GRAMMARS[d_model]
    clauses = [draw_clause(rng, passive=passive, places=places)]
    if rng.random() < TWO:
        clauses.append(draw_clause(rng, passive=passive, places=places))
    tokens: list[str] = []
    verbs = []
    for clause in clauses:
        tokens += [AND] if tokens else []
        start = len(tokens)
        whom = None if clause.whom is None else start + clause.whom
        verbs.append(Verb(start + clause.verb, start + clause.who, whom))
        tokens += clause.tokens
    return TwoVerbs(tokens + (["."] if rng.random() < 0.2 else []), verbs)


def encode(sentences: Sequence[TwoVerbs]) -> Batch:
    """Look up the ids of the words and of the answers: a row for each verb of each sentence.

    Args:
        sentences: as `draw_two_verbs` returns them.

    Example:
        >>> from attention.trained.two_verbs import TwoVerbs, Verb, encode
        >>> tokens = "the cat saw the dog and the dog chased the other cat".split()
        >>> batch = encode([TwoVerbs(tokens, [Verb(2, who=1, whom=4), Verb(8, who=7, whom=11)])])
        >>> batch.token_ids.shape, batch.verb
        (torch.Size([2, 12]), tensor([2, 8]))
    """
    rows = [
        (sentence.tokens, verb.place, *words)
        for sentence in sentences
        for verb, words in zip(sentence.verbs, sentence.answers, strict=True)
    ]
    tokens, places, who, whom = zip(*rows, strict=True)
    return Batch(
        VOCABULARY.encode_batch(tokens),
        torch.tensor(places),
        torch.tensor([VOCABULARY.ids[word] for word in who]),
        torch.tensor([VOCABULARY.ids[word] for word in whom]),
    )


def find_verbs(tokens: Sequence[str]) -> list[int]:
    """Find the places of the verbs among the words of a sentence.

    Args:
        tokens: the words, seq of them.

    Example:
        >>> from attention.trained.two_verbs import find_verbs
        >>> find_verbs("the cat saw the dog and the dog chased the other cat".split())
        [2, 8]
    """
    return [i for i, token in enumerate(tokens) if token in ALL_VERBS]


def new_two_verbs(d_model: int = 8, count: int = 4000) -> list[TwoVerbs]:
    """Draw new sentences to measure on, the same at every call.

    At d_model 8 they are 1,648 with one verb, of which training drew 410 as well, and 2,352 with
    two, of which it drew 6.

    Args:
        d_model: as for `draw_two_verbs`.
        count: how many sentences.

    Example:
        >>> from attention.trained.two_verbs import new_two_verbs
        >>> sum(len(sentence.verbs) == 2 for sentence in new_two_verbs())
        2352
    """
    rng = random.Random(10**6)
    return [draw_two_verbs(rng, d_model=d_model) for _ in range(count)]
