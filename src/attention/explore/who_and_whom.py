"""The trained model at work: a sentence, what each head looks at from its verb, and the answers."""

from attention.explore.controls import D_MODELS, N_HEADS, size_sliders
from attention.explore.explorer import Explorer, Frame, explorer, page_weights
from attention.explore.trained_example import ALL_VERBS, answered
from attention.plots import Picture, plot_heads
from attention.text import tokenize
from attention.trained.grammar import PARTICIPLES, PLACES, find_verb
from attention.trained.stored import load_trained, measured, stored
from attention.trained.training import RECIPES

GRAMMARS = {
    (False, False): "active",
    (True, False): "active and passive",
    (True, True): "active and passive, with places",
}


def who_and_whom_explorer(sentence: str = "a dog chased the red ball") -> Explorer:
    """Explore who did what to whom: the trained model's heads, drawn over the words of a sentence.

    A text field takes a sentence of the reader's own, and every head can be switched off.

    Args:
        sentence: what it starts with; its words are in the model's vocabulary.

    Returns:
        The explorer, with controls ``d_model`` and ``n_heads``.

    Raises:
        ValueError: the sentence has no verb that the model knows.
    """
    tokens = tokenize(sentence)
    if find_verb(tokens) is None:
        raise ValueError(
            f"the sentence has no verb that the model knows: {sentence!r}; "
            f"it knows {', '.join(ALL_VERBS)}"
        )

    def frame(d_model: int, n_heads: int) -> Frame:
        answer = answered(tokens, load_trained(d_model, n_heads))
        accuracy, roles = measured(d_model, n_heads)
        recipe = RECIPES[d_model]
        passive = () if recipe.passive else ("was", "by", *PARTICIPLES)
        places = () if recipe.places else ("near", *PLACES)
        return {
            **answer,
            "accuracy": accuracy,
            "roles": [list(head) for head in roles],
            "grammar": GRAMMARS[recipe.passive, recipe.places],
            "unmet": [*passive, *places],  # words that training at this width never drew
        }

    def still(frame: Frame) -> Picture:
        return plot_heads(
            frame["tokens"],
            frame["verb"],
            frame["weights"],
            alt=f"The sentence {sentence!r}. A line for each head goes from the verb to the words "
            "it looks at, as wide as the weight: one head looks at who acts, the other at whom "
            "it is done to.",
        )

    return explorer(
        "who_and_whom",
        size_sliders(D_MODELS, N_HEADS),
        frame,
        still,
        models={
            f"{d_model},{n_heads}": page_weights(load_trained(d_model, n_heads), reads_out=True)
            for d_model, n_heads in stored()
        },
        modules=["arcs"],
    )
