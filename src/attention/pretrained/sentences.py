"""Sentences in which a verb's subject is not the previous word, for a published model.

Each kind pulls two rules apart: a head that looks for the subject, and one that looks for the
previous word or the nearest noun.
"""

import random
from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple

NOUNS = [
    "cat",
    "dog",
    "bird",
    "horse",
    "fox",
    "wolf",
    "child",
    "girl",
    "boy",
    "woman",
    "man",
    "king",
    "queen",
    "farmer",
    "teacher",
    "sailor",
    "baker",
    "doctor",
    "nurse",
    "cook",
]
VERBS = ["chased", "followed", "found", "saw", "took", "knew", "bit"]
PLACES = [
    "near the river",
    "behind the house",
    "under the tree",
    "with the lamp",
    "beside the door",
    "on the hill",
]
OPENING = "Once upon a time"
KINDS = ("plain", "place", "relative")
IN_BOTH_NUMBERS = (
    "key keys cat cats dog dogs boy boys farmer farmers picture pictures author authors"
)
OF_BOTH_GENDERS = "king queen boy girl man woman father mother husband wife uncle aunt son daughter"
# After these verbs SmolLM2 nearly always says himself of a man and herself of a woman.
OF_ONESELF = ("blamed", "introduced", "taught", "covered")


class Sentence(NamedTuple):
    """A sentence as token ids, and the positions of the words that a verb has to do with.

    Attributes:
        ids: of its tokens.
        subject: the position of the verb's subject.
        verb: that of the verb, which is the last one in a sentence with a relative clause.
        nearest: that of the nearest noun before the verb, the subject itself in a plain sentence.
        object: that of the verb's object.

    Example:
        >>> from attention.pretrained.sentences import Sentence
        >>> Sentence([504, 2767], subject=1, verb=2, nearest=1, object=4).subject
        1
    """

    ids: list[int]
    subject: int
    verb: int
    nearest: int
    object: int


class Choice(NamedTuple):
    """The beginning of a sentence, and two words of which its subject allows one.

    Attributes:
        beginning: what the model reads.
        right: the word that agrees with the subject, with the space before it.
        wrong: the word that agrees with the noun beside the subject.

    Example:
        >>> from attention.pretrained.sentences import Choice
        >>> Choice("The keys near the cabinet", " are", " is").right
        ' are'
    """

    beginning: str
    right: str
    wrong: str


def is_or_are() -> list[Choice]:
    """Beginnings that end before the verb: "the keys near the cat", which is plural.

    Source:
        Linzen et al. 2016, for such sentences.

    Example:
        >>> from attention.pretrained.sentences import is_or_are
        >>> len(is_or_are()), is_or_are()[0]
        (84, Choice(beginning='The key near the cats', right=' is', wrong=' are'))
    """
    return [
        Choice(f"The {noun} near the {other}", right, wrong)
        for noun, other, (right, wrong) in crossed(IN_BOTH_NUMBERS, (" is", " are"))
    ]


def himself_or_herself() -> list[Choice]:
    """Beginnings that end with the verb: "the king near the girl blamed", himself.

    Source:
        Marvin and Linzen 2018, for reflexive pronouns.

    Example:
        >>> from attention.pretrained.sentences import himself_or_herself
        >>> len(himself_or_herself()), himself_or_herself()[0].beginning
        (336, 'Once upon a time the king near the girl blamed')
    """
    return [
        Choice(f"{OPENING} the {noun} near the {other} {verb}", right, wrong)
        for verb in OF_ONESELF
        for noun, other, (right, wrong) in crossed(OF_BOTH_GENDERS, (" himself", " herself"))
    ]


def crossed(pairs: str, forms: tuple[str, str]) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Every noun beside every other noun of the other form, and `forms`, the fitting one first."""
    words = pairs.split()
    for nouns, others in permutations(zip(words[::2], words[1::2], strict=True), 2):
        yield nouns[0], others[1], forms
        yield nouns[1], others[0], forms[::-1]


def sentence(words: list[str], tokenizer: Any, **at: int) -> Sentence:
    """Locate the words of a sentence: a word of several tokens is at the position of its last.

    Args:
        words: after "Once upon a time".
        tokenizer: as `attention.pretrained.load` returns it.
        at: by name, the index of each word among them.
    """
    encoding = tokenizer.encode(f"{OPENING} {' '.join(words)}.")
    last: list[int] = []  # of each word, the opening's among them
    for i, token in enumerate(encoding.tokens):
        if i == 0 or token.startswith("Ġ"):
            last.append(i)
        elif token != ".":
            last[-1] = i
    first = len(OPENING.split())
    return Sentence(encoding.ids, **{name: last[first + index] for name, index in at.items()})


def draw(kind: str, tokenizer: Any, rng: random.Random) -> Sentence:
    """Draw a sentence: "the dog", "the dog near the river", "the dog that the fox saw", chased …

    Args:
        kind: of `KINDS`.
        tokenizer: as `attention.pretrained.load` returns it.
        rng: draws its words.

    Raises:
        ValueError: there is no such kind.

    Example:
        >>> import random
        >>> from attention.pretrained import load
        >>> from attention.pretrained.sentences import draw
        >>> tokenizer = load().tokenizer
        >>> one = draw("relative", tokenizer, random.Random(0))
        >>> tokenizer.decode(one.ids)
        'Once upon a time the queen that the farmer took found the dog.'
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} must be one of {', '.join(KINDS)}")
    subject, other, third = rng.sample(NOUNS, 3)
    verb, inner = rng.sample(VERBS, 2)
    between = {
        "plain": [],
        "place": rng.choice(PLACES).split(),
        "relative": ["that", "the", other, inner],
    }[kind]
    words = ["the", subject, *between, verb, "the", third]
    nearest = {"plain": 1, "place": 1 + len(between), "relative": 4}[kind]
    at = {"subject": 1, "verb": 2 + len(between), "nearest": nearest}
    return sentence(words, tokenizer, **at, object=len(words) - 1)
