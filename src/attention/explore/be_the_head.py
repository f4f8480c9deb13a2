"""An attention head that the reader sets by hand, and at how many verbs it is right.

A word's score is the sum of what the head likes about it: that it is a noun, and its position. When
positions are counted from the start of the sentence, they are the same for every verb that asks, so
there is one query for all verbs. When they are counted from the verb that asks, each verb has a
query of its own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from ipywidgets import Checkbox, Dropdown, SelectionSlider
from jaxtyping import Float, Int64
from torch import Tensor

from attention.explore.explorer import SENTENCE as READS
from attention.explore.explorer import Explorer, Frame, explorer
from attention.plots import Picture, plot_matrices
from attention.trained.who_and_whom import (
    ALL_VERBS,
    NOUNS,
    PLACES,
    PLURALS,
    VOCABULARY,
    Sentence,
    find_verbs,
    new_sentences,
)
from attention.trained.who_and_whom.data import TIMES

SENTENCE = "the cat saw the dog and the dog chased the other cat"
COUNT = 500  # sentences with two verbs
QUESTIONS = ("who", "whom")
ALL_NOUNS = (*NOUNS, *PLURALS, *PLACES, *TIMES, VOCABULARY.unk)  # an unknown word is drawn as one
FROM_VERB = (-2, -1, 1, 2, 3)
FROM_START = (0, 1, 2, 3, 4)
# What may be liked, and what a slider calls it: a position by both ways of counting.
LIKED = {
    "noun": "noun",
    "before_2": "2 before · word 1",
    "before_1": "1 before · word 2",
    "after_1": "1 after · word 3",
    "after_2": "2 after · word 4",
    "after_3": "3 after · word 5",
}
MOST = 6
# What the stored frames are computed for. No two controls have the same value, so that a page that
# takes one for another is noticed.
STORED = {"who": (5, 3, 6, 1, 2, 4), "whom": (2, 1, 4, 3, 5, 6)}


class Asked(NamedTuple):
    """Sentences as numbers, with what is asked.

    Attributes:
        nouns: (batch, seq): 1 for a noun, 0 for another word, -1 for padding.
        verbs: (batch, 2), the positions of the verbs.
        who: (batch, 2), the position of who acts, for each verb.
        whom: (batch, 2), the position of who is acted on, for each verb; -1 where there is nobody.
    """

    nouns: Float[Tensor, "batch seq"]
    verbs: Int64[Tensor, "batch 2"]
    who: Int64[Tensor, "batch 2"]
    whom: Int64[Tensor, "batch 2"]


def encode(sentences: Sequence[Sentence]) -> Asked:
    """Turn sentences with two verbs into numbers."""
    rows = [is_noun(sentence.tokens) for sentence in sentences]
    places = [
        [(verb.place, verb.who, -1 if verb.whom is None else verb.whom) for verb in sentence.verbs]
        for sentence in sentences
    ]
    nouns = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
    return Asked(nouns, *torch.tensor(places).unbind(dim=-1))


def is_noun(tokens: Sequence[str]) -> Float[Tensor, " seq"]:
    return torch.tensor([float(token in ALL_NOUNS) for token in tokens])


def scores(
    nouns: Float[Tensor, "*batch seq"],
    verbs: Int64[Tensor, "*batch verb"],
    likes: Sequence[int],
    *,
    from_the_verb: bool,
) -> Float[Tensor, "*batch verb seq"]:
    """Score every word for every verb that asks.

    Args:
        nouns: as in `Asked`.
        verbs: as in `Asked`.
        likes: how much the head likes each of `LIKED`.
        from_the_verb: whether positions are counted from the verb that asks, or from the start.
    """
    place = torch.arange(nouns.shape[-1])
    from_verb = place - verbs[..., None]
    place = from_verb if from_the_verb else place.expand_as(from_verb)
    nouns = nouns[..., None, :]
    noun, *seats = likes
    total = noun * (nouns == 1).double()
    for like, seat in zip(seats, FROM_VERB if from_the_verb else FROM_START, strict=True):
        total = total + like * (place == seat).double()
    return total.masked_fill(nouns < 0, -torch.inf)


def answers(scores: Float[Tensor, "*batch seq"]) -> Int64[Tensor, "*batch"]:
    """Find the word with the largest score, and so the largest weight; -1 where several share it.

    Scores are sums of whole numbers, so that equal ones are equal to the last digit everywhere.
    """
    largest, place = scores.max(dim=-1)
    return place.masked_fill((scores == largest[..., None]).sum(dim=-1) > 1, -1)


def count_right(asked: Asked, question: str, likes: Sequence[int], *, from_the_verb: bool) -> int:
    """Count the verbs for which the head looks most at the right word."""
    wanted = getattr(asked, question)
    given = answers(scores(asked.nouns, asked.verbs, likes, from_the_verb=from_the_verb))
    return int(((given == wanted) & (wanted >= 0)).sum())


def two_verb_sentences() -> list[Sentence]:
    """The 500 sentences on which the head is tried, the same at every call."""
    return [each for each in new_sentences(count=1000) if len(each.verbs) == 2][:COUNT]


def be_the_head_explorer() -> Explorer:
    """Be an attention head: set what it likes, and see what each of two verbs looks at.

    The explorer says at how many verbs of 500 sentences with two verbs the head is right. A text
    field takes a sentence of the reader's own.

    Returns:
        The explorer, with controls ``question``, ``from_the_verb``, ``noun`` and one for each
        position: ``before_2``, ``before_1``, ``after_1``, ``after_2`` and ``after_3``.
    """
    asked = encode(two_verb_sentences())
    tokens = SENTENCE.split()
    nouns, places = is_noun(tokens), torch.tensor(find_verbs(tokens))

    def frame(question: str, from_the_verb: bool) -> Frame:
        likes = STORED[question]
        made = scores(nouns, places, likes, from_the_verb=from_the_verb)
        right = count_right(asked, question, likes, from_the_verb=from_the_verb)
        of = int((getattr(asked, question) >= 0).sum())
        return {
            "tokens": tokens,
            "asking": places.tolist(),
            "nouns": nouns,
            "weights": made.softmax(dim=-1)[..., None],  # (verb, key, 1), as bars
            "answers": answers(made).tolist(),
            "right": right,
            "of": of,
            "share": torch.tensor([[right / of]]),
            "setting": {name: str(like) for name, like in zip(LIKED, likes, strict=True)},
        }

    def still(_frame: Frame) -> Picture:
        """What the controls start at, which is not the setting that the frames are stored for."""
        likes = [control.value for control in sliders.values()]
        made = scores(nouns, places, likes, from_the_verb=False)
        return plot_matrices(
            {"weights of a head that likes nouns": made.softmax(dim=-1)},
            rows=[tokens[place] for place in places],
            columns=tokens,
            signed=False,
            alt=f"The sentence “{SENTENCE}”: a row for each of its two verbs, a column for each "
            "word. The head likes nouns and no position, so both verbs give the same weight, 0.20, "
            "to each of the four nouns and 0.03 to every other word: neither has an answer.",
        )

    sliders = {
        name: SelectionSlider(
            options=range(MOST + 1),
            value=2 if name == "noun" else 0,
            description=label,
            style={"description_width": "initial"},
        )
        for name, label in LIKED.items()
    }
    controls = {
        "question": Dropdown(options=QUESTIONS, value="who", description="question"),
        "from_the_verb": Checkbox(
            value=False, description="count positions from the verb that asks", indent=False
        ),
        **sliders,
    }
    page = {"nouns": asked.nouns, "asks": torch.stack(asked[1:], dim=-1)}  # (batch, 2, 3)
    words = {"all_nouns": ALL_NOUNS, "all_verbs": ALL_VERBS}
    reads = READS._replace(
        kind="sentence with two verbs",
        placeholder=SENTENCE,
        examples=[
            SENTENCE,
            "the fox bit the wolf and the wolf bit the fox",
            "a child hid the big drum and the queen found the child",
            "birds sing at dawn and a dog chased the red ball",
        ],
    )
    return explorer(
        "be_the_head",
        "Be the head",
        controls,
        frame,
        still,
        models={"head": page | words},
        reads=reads,
    )
