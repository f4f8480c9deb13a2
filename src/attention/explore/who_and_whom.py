"""The trained model at work: a sentence, what each head looks at from a verb, and the answers."""

from collections.abc import Sequence
from typing import NamedTuple

from attention.explore.controls import D_MODELS, N_HEADS, size_sliders
from attention.explore.explorer import SENTENCE, Explorer, Frame, explorer, page_weights
from attention.explore.trained_example import answered, tokens_with_verb
from attention.plots import Picture, plot_heads
from attention.trained import who_and_whom
from attention.trained.who_and_whom import (
    ALL_VERBS,
    GRAMMARS,
    PARTICIPLES,
    PLACES,
    PLURALS,
    SIZES,
    Draw,
    Head,
    Sentence,
    WhoAndWhom,
    accuracy,
    encode,
    measured,
    new_sentences,
    roles,
)

NAMES_OF_GRAMMARS = {  # by passive and places
    (False, False): "active",
    (True, False): "active and passive",
    (True, True): "active and passive, with places",
}


class Shown(NamedTuple):
    """A model, what was measured of it, and words that it never met in training."""

    model: WhoAndWhom
    accuracy: float
    roles: list[Head]
    grammar: str
    unmet: tuple[str, ...]


def who_and_whom_explorer(
    sentence: str = "the cat saw the dog and the dog chased the other cat",
    *,
    title: str = "Who did it, and to whom",
    d_models: Sequence[int] = D_MODELS,
    model: WhoAndWhom | None = None,
    draw: Draw | None = None,
) -> Explorer:
    """Explore who did what to whom: the trained model's heads, drawn over the words of a sentence.

    A text field takes a sentence of the reader's own. If there are two verbs, the one that is
    pointed at asks, and every head can be switched off.

    Args:
        sentence: what it starts with, with a verb that the model knows.
        title: what a screen reader calls the figure, in a few words that no other figure has.
        d_models: the widths that the d_model slider offers.
        model: one that `train` returned, to be shown instead of the stored ones.
        draw: draws the sentences of this model, as for `train`. The model is measured at the verbs
            of 4,000 new ones.

    Returns:
        The explorer, with controls ``d_model`` and ``n_heads``.

    Raises:
        ValueError: the sentence has no verb that the model knows.
    """
    verbs = ALL_VERBS
    if model is None:
        shown, reads = book_model, SENTENCE
        pairs = [size for size in SIZES if size[0] in d_models]
        sizes = size_sliders(d_models, N_HEADS)
    else:
        d_model, n_heads = model.attention.d_model, model.attention.n_heads
        new = new_sentences(d_model, draw=draw)
        own = own_model(model, new)
        shown, pairs = lambda d_model, n_heads: own, [(d_model, n_heads)]
        verbs = tuple(dict.fromkeys(each.tokens[verb.place] for each in new for verb in each.verbs))
        reads = SENTENCE._replace(
            placeholder=sentence, vocabulary=list(model.vocabulary.tokens), examples=[]
        )
        sizes = size_sliders([d_model], [n_heads])
    tokens = tokens_with_verb(sentence, verbs)

    def frame(d_model: int, n_heads: int) -> Frame:
        one = shown(d_model, n_heads)
        return {
            **answered(tokens, one.model, verbs),
            "accuracy": one.accuracy,
            "roles": [list(head) for head in one.roles],
            "grammar": one.grammar,
            "unmet": list(one.unmet),
            "plurals": list(PLURALS),
        }

    def still(frame: Frame) -> Picture:
        return plot_heads(
            frame["tokens"],
            frame["verb"],
            frame["weights"],
            alt=f"The sentence {sentence!r}. A line for each head goes from its first verb to the "
            "words it looks at, as wide as the weight: one head looks at who acts, the other at "
            "whom it is done to.",
        )

    return explorer(
        "who_and_whom",
        title,
        sizes,
        frame,
        still,
        models={
            f"{d_model},{n_heads}": page_weights(shown(d_model, n_heads).model, reads_out=True)
            for d_model, n_heads in pairs
        },
        reads=reads,
    )


def book_model(d_model: int, n_heads: int) -> Shown:
    """One of the stored models."""
    model, grammar = who_and_whom.load(d_model, n_heads), GRAMMARS[d_model]
    passive = () if grammar.passive else ("was", "by", *PARTICIPLES)
    places = () if grammar.places else ("near", *PLACES)
    unmet = (*passive, *places)
    stored = measured(d_model, n_heads)
    return Shown(model, stored.accuracy, stored.roles, NAMES_OF_GRAMMARS[grammar], unmet)


def own_model(model: WhoAndWhom, new: list[Sentence]) -> Shown:
    """A model of the caller's, measured on new sentences of its own."""
    right = accuracy(model, encode(new, model.vocabulary)).both
    return Shown(model, right, roles(model, new), "your own grammar", ())
