"""A layer with parts taken away: what the trained models of relative clauses still answer."""

import torch
from ipywidgets import Checkbox, SelectionSlider

from attention.explore.explorer import Explorer, Frame, Reads, explorer
from attention.explore.trained_example import tokens_with_verb
from attention.plots import Picture, plot_heads
from attention.trained import relative_clauses
from attention.trained.relative_clauses import (
    LAYERS,
    LONGEST,
    VOCABULARY,
    accuracy_by_kind,
    new_clauses,
)
from attention.trained.who_and_whom import PARTICIPLES, VERBS
from attention.trained.without_parts import rows_by_sublayer, spread, without_parts

CLAUSES = Reads(
    "sentence",
    "your own sentence",
    "the fox that saw the king followed a girl",
    list(VOCABULARY.tokens),
    LONGEST,
)
ALL_VERBS = [*VERBS, *PARTICIPLES]


def layer_explorer(sentence: str = "the dog saw the bird that the cat chased") -> Explorer:
    """Explore what each part of a layer does, by taking it away from a trained model.

    A text field takes a sentence of the reader's own.

    Args:
        sentence: what it starts with; its words are in the models' vocabulary, a verb among them.

    Returns:
        The explorer, with controls ``n_layers``, ``residual``, ``layer_norm`` and ``feed_forward``.

    Raises:
        ValueError: the sentence has no verb that the models know.
    """
    tokens = tokens_with_verb(sentence, ALL_VERBS)
    places = [place for place, token in enumerate(tokens) if token in ALL_VERBS]
    token_ids = VOCABULARY.encode_batch([tokens])
    whole = {n_layers: relative_clauses.load(n_layers).double() for n_layers in LAYERS}
    new = new_clauses()

    @torch.no_grad()
    def frame(n_layers: int, residual: bool, layer_norm: bool, feed_forward: bool) -> Frame:
        on = {"residual": residual, "layer norm": layer_norm, "feed-forward": feed_forward}
        model = without_parts(whole[n_layers], *(part for part in on if not on[part]))
        x = model.positional_encoding(model.embedding(token_ids))
        answer = model(token_ids)
        who, whom = (logits[0, places].softmax(-1) for logits in (answer.who, answer.whom))
        return {
            "tokens": tokens,
            "places": places,
            "who": VOCABULARY.decode(who.argmax(-1)),
            "whom": VOCABULARY.decode(whom.argmax(-1)),
            "sure": torch.stack([who.amax(-1), whom.amax(-1)], -1),  # (verbs, 2)
            "weights": torch.cat(answer.weights),  # (n_layers, heads, query, key)
            "spread": torch.cat([spread(x) for x in rows_by_sublayer(model.encoder, x)])[:, None],
            "verbs": ALL_VERBS,
            "vocabulary": list(VOCABULARY.tokens),
            "right": round(accuracy_by_kind(model, new)["all"], 4),
        }

    def still(frame: Frame) -> Picture:
        last = places[-1]
        return plot_heads(
            tokens,
            last,
            frame["weights"][-1],
            alt=f"The sentence “{' '.join(tokens)}”, read by the model with one layer, and from "
            f"“{tokens[last]}” an arc to each word that a head looks at, as wide as its weight.",
        )

    controls = {
        "n_layers": SelectionSlider(options=list(LAYERS), value=1, description="n_layers"),
        "residual": Checkbox(True, description="residual"),
        "layer_norm": Checkbox(True, description="layer norm"),
        "feed_forward": Checkbox(True, description="feed-forward"),
    }
    n_heads = whole[1].encoder.layers[0].self_attention.n_heads
    models = {str(n): {**model.state_dict(), "n_heads": n_heads} for n, model in whole.items()}
    return explorer(
        "layer",
        "A layer without some of its parts",
        controls,
        frame,
        still,
        models=models,
        reads=CLAUSES,
    )
