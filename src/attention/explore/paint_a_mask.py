"""A mask that the reader paints, and at how many verbs the model is still right under it."""

import torch
from ipywidgets import Dropdown
from jaxtyping import Bool, Int64
from torch import Tensor

from attention.explore.be_the_head import two_verb_sentences
from attention.explore.explorer import SENTENCE as READS
from attention.explore.explorer import Explorer, Frame, explorer, page_weights
from attention.plots import Picture, plot_matrices
from attention.trained.who_and_whom import (
    ALL_VERBS,
    VOCABULARY,
    Batch,
    WhoAndWhom,
    accuracy,
    encode,
    find_verbs,
    load,
)

SENTENCE = "the cat saw the dog and the dog chased the cat"
COUNT = 300  # sentences with two verbs
STARTS = (
    "nothing hidden",
    "padding hidden",
    "padding and future hidden",
    "only the next word",
    "each word only itself",
    "everything hidden",
)


def starting_mask(start: str, token_ids: Int64[Tensor, "batch seq"]) -> Bool[Tensor, "batch 1 q k"]:
    """The mask that painting begins with: True = may attend."""
    is_word = (token_ids != VOCABULARY.pad_id)[:, None, None, :]
    place = torch.arange(token_ids.shape[1])
    query, key = place[:, None], place[None, :]
    everything = torch.ones(len(place), len(place), dtype=torch.bool).expand(
        len(token_ids), 1, -1, -1
    )
    return {
        "nothing hidden": everything,
        "padding hidden": everything & is_word,
        "padding and future hidden": is_word & (key <= query),
        "only the next word": everything & (key == query + 1),
        "each word only itself": everything & (key == query),
        "everything hidden": ~everything,
    }[start]


def two_verb_batch() -> Batch:
    """The verbs of 300 new sentences with two verbs: a row for each, the same at every call."""
    return encode(two_verb_sentences()[:COUNT])


def book_model() -> WhoAndWhom:
    return load().requires_grad_(False).double()


def count_right(model: WhoAndWhom, batch: Batch, mask: Bool[Tensor, "batch 1 q k"]) -> int:
    """Count the verbs at which both answers are right under a mask."""

    def attend(x: Tensor, _padding: Tensor) -> Tensor:
        return model.attention(x, mask=mask)[0]

    return round(accuracy(model, batch, attend).both * len(batch.verb))


def paint_a_mask_explorer() -> Explorer:
    """Paint a mask: switch its cells, and see weights, answers, and at how many verbs they hold.

    A click or a tap switches a cell, and Enter or Space switches the one that the arrow keys point
    at. A text field takes a sentence of the reader's own.

    Returns:
        The explorer, with control ``start_from``.
    """
    model, batch = book_model(), two_verb_batch()
    tokens = [*SENTENCE.split(), "<pad>"]
    token_ids = VOCABULARY.encode_batch([tokens])
    places = torch.tensor(find_verbs(tokens))

    def frame(start_from: str) -> Frame:
        mask = starting_mask(start_from, token_ids)
        output, weights = model.attention(model.embed(token_ids).double(), mask=mask)
        logits = model.read(output.expand(len(places), -1, -1), places)
        shares, words = torch.stack(logits, dim=1).softmax(-1).max(-1)  # (verb, 2)
        right = count_right(model, batch, starting_mask(start_from, batch.token_ids))
        return {
            "tokens": tokens,
            "asking": places.tolist(),
            "mask": mask[0, 0].double(),
            "weights": weights[0],
            "right": right,
            "of": len(batch.verb),
            "answers": VOCABULARY.decode(words.flatten().tolist()),
            "shares": shares,
            "share": torch.tensor([[right / len(batch.verb)]]),
        }

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {"your mask, 1 = may attend": frame["mask"], "weights of head 0": frame["weights"][0]},
            rows=tokens,
            columns=tokens,
            signed=False,
            alt=f"The sentence “{SENTENCE}” and one pad: a row for each query, a column for each "
            "key. Left, the mask that painting starts from: 1 everywhere, so nothing is hidden. "
            "Right, the weights of head 0, whose rows sum to 1.",
        )

    asks = torch.stack([batch.verb, batch.who, batch.whom], dim=-1)
    page = page_weights(model, reads_out=True) | {
        "sentences": batch.token_ids[::2],
        "asks": asks.view(-1, 2, 3),  # (sentence, verb, position and answers)
        "vocabulary": list(VOCABULARY.tokens),
        "all_verbs": ALL_VERBS,
    }
    return explorer(
        "paint_a_mask",
        "Paint a mask",
        {
            "start_from": Dropdown(
                options=STARTS,
                value="nothing hidden",
                description="start from",
            )
        },
        frame,
        still,
        models={"book": page},
        reads=READS._replace(
            placeholder=SENTENCE,
            examples=[
                SENTENCE,
                "the fox bit the wolf and the wolf bit the fox",
                "birds sing and a dog chased the ball",
            ],
        ),
    )
