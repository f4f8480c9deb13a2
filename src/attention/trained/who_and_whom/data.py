"""Sentences about who did what to whom, drawn from a small grammar, with their answers.

In a clause somebody acts, mostly on somebody or something: "the cat saw the other cat". In the
passive the two change places: "the ball was chased by a dog". A noun may be followed by a place
that plays no part: "the dog near the house". Six sentences in ten have two clauses, joined by
"and": "the cat saw the dog and the dog chased the other cat". Each verb asks for its own who and
whom, among the same words. Order and a few small words decide who and whom; what a noun means does
not, and balls chase dogs as often as dogs chase balls. One noun in 33 is a word that the model does
not know.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from attention.text import Vocabulary

NOUNS = (
    "cat", "dog", "bird", "horse", "fox", "wolf", "child", "girl",
    "boy", "woman", "man", "king", "queen", "farmer", "teacher", "sailor",
    "baker", "doctor", "nurse", "cook", "ball", "stone", "boat", "flower",
    "kite", "bell", "lamp", "drum", "book", "cup", "door", "coin",
)  # fmt: skip
PLURALS = ("birds", "children", "dogs")
ADJECTIVES = ("red", "other", "small", "old", "young", "big", "white", "black")
PLACES = ("house", "river", "tree", "hill")
# Verbs with the participles of their passives. In three of them, the two are the same word.
VERBS = {
    "chased": "chased", "followed": "followed", "found": "found",
    "saw": "seen", "took": "taken", "drew": "drawn", "knew": "known", "bit": "bitten",
    "hid": "hidden",
}  # fmt: skip
PARTICIPLES = tuple(participle for verb, participle in VERBS.items() if participle != verb)
ALONE = ("sing", "sleep", "run")  # verbs that act on nobody
ALL_VERBS = (*VERBS, *PARTICIPLES, *ALONE)
TIMES = ("dawn", "night", "noon")
NOBODY = "nobody"
AND = "and"  # between two clauses
SMALL = ("the", "a", "an", "was", "by", "near", "at", ".", AND)

# All models share one vocabulary, so an id is the same word everywhere.
WORDS = (*NOUNS, *PLURALS, *ADJECTIVES, *PLACES, *VERBS, *PARTICIPLES, *ALONE, *TIMES, *SMALL)
VOCABULARY = Vocabulary([[*WORDS, NOBODY]])
LONGEST = 34  # tokens; the longest that is drawn has 32
TWO_VERBS = 0.6  # the share of sentences with two clauses


class Verb(NamedTuple):
    """A verb, and the positions of the answers to its two questions.

    Attributes:
        place: the position of the verb among the words of its sentence.
        who: the position of the noun that acts.
        whom: the position of the noun that is acted on; None where there is none.

    Example:
        >>> from attention.trained.who_and_whom import Verb
        >>> Verb(2, who=1, whom=4)
        Verb(place=2, who=1, whom=4)
    """

    place: int
    who: int
    whom: int | None


class Sentence(NamedTuple):
    """A sentence with one verb or two.

    Attributes:
        tokens: its words.
        verbs: its verbs, from left to right.
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


class Batch(NamedTuple):
    """Sentences as numbers: a row for each verb, so that a sentence with two verbs has two rows.

    Attributes:
        token_ids: (batch, seq), padded.
        verb: (batch,), the position of the verb that asks.
        who: (batch,), the id of the word that acts.
        whom: (batch,), the id of the word that is acted on.
    """

    token_ids: Int64[Tensor, "batch seq"]
    verb: Int64[Tensor, " batch"]
    who: Int64[Tensor, " batch"]
    whom: Int64[Tensor, " batch"]


def draw_clause(rng: random.Random, *, passive: bool, places: bool) -> Sentence:
    """Draw one clause, as a sentence without an end: see `draw_sentence` for the arguments."""
    if rng.random() < 0.08:
        words = [rng.choice(PLURALS), rng.choice(ALONE), "at", rng.choice(TIMES)]
        return Sentence(words, [Verb(1, who=0, whom=None)])
    first, first_noun = draw_noun_phrase(rng, places=places)
    second, second_noun = draw_noun_phrase(rng, places=places)
    verb = rng.choice(list(VERBS))
    if passive and rng.random() < 0.5:
        words = [*first, "was", VERBS[verb], "by"]
        answers = Verb(len(first) + 1, who=len(words) + second_noun, whom=first_noun)
        return Sentence([*words, *second], [answers])
    words = [*first, verb]
    answers = Verb(len(first), who=first_noun, whom=len(words) + second_noun)
    return Sentence([*words, *second], [answers])


def draw_noun_phrase(rng: random.Random, *, places: bool) -> tuple[list[str], int]:
    """Draw a noun and the words around it; the number is the noun's position among these words."""
    adjective = [rng.choice(ADJECTIVES)] if rng.random() < 0.4 else []
    words = [*adjective, rng.choice((*NOUNS, Vocabulary.unk))]
    words = [rng.choice(("the", "an" if words[0][0] in "aeiou" else "a")), *words]
    noun = len(words) - 1
    if places and rng.random() < 0.25:
        words += ["near", "the", rng.choice(PLACES)]
    return words, noun


def draw_sentence(rng: random.Random, *, passive: bool, places: bool) -> Sentence:
    """Draw one sentence.

    Args:
        rng: where the choices come from.
        passive: whether half of the clauses are in the passive.
        places: whether a quarter of the nouns stand "near the house" or another place.
    """
    sentence = draw_clause(rng, passive=passive, places=places)
    if rng.random() < TWO_VERBS:
        sentence = joined(sentence, draw_clause(rng, passive=passive, places=places))
    end = ["."] if rng.random() < 0.2 else []
    return sentence._replace(tokens=sentence.tokens + end)


def joined(first: Sentence, second: Sentence) -> Sentence:
    """Join two clauses by "and"."""
    start = len(first.tokens) + 1
    moved = [
        Verb(start + place, start + who, None if whom is None else start + whom)
        for place, who, whom in second.verbs
    ]
    return Sentence([*first.tokens, AND, *second.tokens], first.verbs + moved)


def draw_sentences(count: int, *, passive: bool, places: bool, seed: int) -> list[Sentence]:
    """Draw `count` sentences, the same for the same seed.

    Args:
        count: how many.
        passive: as for `draw_sentence`.
        places: as for `draw_sentence`.
        seed: the same sentences for the same seed.

    Example:
        >>> from attention.trained.who_and_whom import draw_sentences
        >>> sentence = draw_sentences(1, passive=True, places=False, seed=1)[0]
        >>> " ".join(sentence.tokens)
        'a fox was seen by a black door and a cat was chased by an old child'
        >>> sentence.answers
        [('door', 'fox'), ('child', 'cat')]
    """
    rng = random.Random(seed)
    return [draw_sentence(rng, passive=passive, places=places) for _ in range(count)]


def encode(sentences: list[Sentence], vocabulary: Vocabulary = VOCABULARY) -> Batch:
    """Look up the ids of the words and of the answers, a row for each verb of each sentence.

    Args:
        sentences: as `draw_sentences` returns them.
        vocabulary: the words that a model knows, the book's unless given.

    Raises:
        ValueError: an answer is not in the vocabulary.

    Example:
        >>> from attention.trained.who_and_whom import draw_sentences, encode
        >>> batch = encode(draw_sentences(3, passive=False, places=False, seed=1))
        >>> batch.token_ids.shape, batch.verb
        (torch.Size([4, 11]), tensor([2, 8, 1, 3]))
    """
    rows = [
        (sentence.tokens, verb.place, *words)
        for sentence in sentences
        for verb, words in zip(sentence.verbs, sentence.answers, strict=True)
    ]
    tokens, places, who, whom = zip(*rows, strict=True)
    if missing := {*who, *whom} - vocabulary.ids.keys():
        raise ValueError(
            f"the vocabulary lacks {', '.join(map(repr, sorted(missing)))}, answers of these "
            f"sentences; give one with every noun that is drawn, and {NOBODY!r} where whom is None"
        )
    return Batch(
        vocabulary.encode_batch(tokens),
        torch.tensor(places),
        torch.tensor([vocabulary.ids[word] for word in who]),
        torch.tensor([vocabulary.ids[word] for word in whom]),
    )


def find_verbs(tokens: list[str], verbs: Sequence[str] = ALL_VERBS) -> list[int]:
    """Find the positions of the verbs among the words of a sentence.

    Args:
        tokens: the words, seq of them.
        verbs: those to look for, the book's unless given.

    Example:
        >>> from attention.trained.who_and_whom import find_verbs
        >>> find_verbs("the cat saw the dog and the dog chased the other cat".split())
        [2, 8]
    """
    return [i for i, token in enumerate(tokens) if token in verbs]


class Grammar(NamedTuple):
    """The two options of `draw_sentence`: what a width can learn."""

    passive: bool
    places: bool

    def draw(self, rng: random.Random) -> Sentence:
        return draw_sentence(rng, passive=self.passive, places=self.places)


# Eight numbers for each word carry active sentences; passives and places take more.
GRAMMARS = {
    8: Grammar(passive=False, places=False),
    12: Grammar(passive=True, places=False),
    16: Grammar(passive=True, places=True),
}

Draw = Callable[[random.Random], Sentence]  # draws one sentence


def new_sentences(
    d_model: int = 8, count: int = 4000, *, draw: Draw | None = None
) -> list[Sentence]:
    """Draw new sentences of the grammar that this width learns, the same at every call.

    The grammar is small: of the 1,648 sentences with one verb at d_model 8, training from seed 4
    drew 397 as well; of the 2,352 with two verbs it drew 9.

    Args:
        d_model: the width of a word's vector, one of `GRAMMARS`.
        count: how many sentences.
        draw: draws one sentence; that of the width's grammar unless given.

    Example:
        >>> from attention.trained.who_and_whom import new_sentences
        >>> " ".join(new_sentences(8)[0].tokens)
        'the bird found the red ball and an other bell hid the cook'
    """
    draw, rng = draw or GRAMMARS[d_model].draw, random.Random(10**6)
    return [draw(rng) for _ in range(count)]
