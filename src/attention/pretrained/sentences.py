"""Sentences in which a verb's subject is not the word before it, for a published model.

Each kind pulls two rules apart: a head that looks for the subject, and one that looks for the
previous word or the nearest noun.
"""

import random
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


class Sentence(NamedTuple):
    """A sentence as token ids, and where the words stand that a verb has to do with.

    Attributes:
        ids: of its tokens.
        subject: the position of the verb's subject.
        verb: that of the verb, the last one of a relative clause's sentence.
        nearest: that of the noun nearest before the verb, the subject itself in a plain sentence.
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


def sentence(words: list[str], tokenizer: Any, **at: int) -> Sentence:
    """Place the words of a sentence: a word of several tokens stands at its last.

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
