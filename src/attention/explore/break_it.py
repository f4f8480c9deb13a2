"""The trained attention with mistakes in it, one or several: the weights, the answers, the price.

The mistakes are those of chapters 3 to 6, under their names there. A step that no mistake touches
is the module's own.
"""

import itertools
from typing import NamedTuple

import torch
from ipywidgets import Checkbox
from jaxtyping import Bool, Float
from torch import Tensor

from attention.dot_product import scaled_scores
from attention.embedding import sines_and_cosines
from attention.explore.explorer import SENTENCE as READS
from attention.explore.explorer import Explorer, Frame, explorer, page_weights
from attention.heads import merge_heads, split_heads
from attention.masks import padding_mask
from attention.multihead import MultiHeadAttention
from attention.plots import Picture, plot_matrices
from attention.trained.who_and_whom import (
    ALL_VERBS,
    VOCABULARY,
    WhoAndWhom,
    accuracy,
    encode,
    find_verbs,
    load,
    new_sentences,
)

SENTENCE = "the cat saw the dog and the dog chased the other cat"
COUNT = 300  # sentences that the price is counted on
PADS = 2  # after a sentence that is shown, so that a mask has something to hide
# What a checkbox calls each mistake.
MISTAKES = {
    "wrong_split": "wrong split: view alone",
    "wrong_axis": "wrong axis: softmax over the queries",
    "no_scale": "no scale: not divided by √d_key",
    "mask_too_late": "mask too late: after the softmax",
    "no_transpose": "no transpose: reshape alone",
}


class Attended(NamedTuple):
    output: Float[Tensor, "batch seq d_model"]
    weights: Float[Tensor, "batch heads query key"]


def view_alone(x: Float[Tensor, "batch seq d_model"], n_heads: int) -> Tensor:
    """Split without the transpose: a head's row for one token is a part of another token."""
    batch, seq, d_model = x.shape
    return x.view(batch, n_heads, seq, d_model // n_heads)


def reshape_alone(x: Float[Tensor, "batch heads seq d_key"]) -> Tensor:
    """Merge without the transpose: a token's row holds other tokens' results."""
    batch, n_heads, seq, d_key = x.shape
    return x.reshape(batch, seq, n_heads * d_key)


def attend_wrongly(
    attention: MultiHeadAttention,
    x: Float[Tensor, "batch seq d_model"],
    mask: Bool[Tensor, "batch 1 1 key"],
    *,
    wrong_split: bool = False,
    wrong_axis: bool = False,
    no_scale: bool = False,
    mask_too_late: bool = False,
    no_transpose: bool = False,
) -> Attended:
    """Self-attention with any of the five mistakes; with none of them it is the module's."""
    split = view_alone if wrong_split else split_heads
    layers = attention.w_q, attention.w_k, attention.w_v
    q, k, v = (split(layer(x), attention.n_heads) for layer in layers)
    scores = scaled_scores(q, k, scale=1.0 if no_scale else None)
    if not mask_too_late:
        scores = scores.masked_fill(~mask, -1e9)
    # With a softmax over the queries, a column that is hidden before it comes out as equal numbers,
    # not as zeros. That is why there is a second mask, as in chapter 4.
    weights = scores.softmax(dim=-2 if wrong_axis else -1) * mask
    merge = reshape_alone if no_transpose else merge_heads
    return Attended(attention.w_o(merge(weights @ v)), weights)


def count_right() -> tuple[dict[tuple[bool, ...], int], int]:
    """Count the verbs for which both answers are right, for each combination of the mistakes.

    Returns:
        The counts, by which of `MISTAKES` are on, and the number of verbs that they are out of.
    """
    model, batch = load(8, 2).double(), encode(new_sentences(count=COUNT))
    of = len(batch.verb)

    def right(on: tuple[bool, ...]) -> int:
        mistakes = dict(zip(MISTAKES, on, strict=True))

        def attend(x: Tensor, mask: Tensor) -> Tensor:
            return attend_wrongly(model.attention, x, mask, **mistakes).output

        return round(accuracy(model, batch, attend).both * of)

    return {on: right(on) for on in itertools.product((False, True), repeat=len(MISTAKES))}, of


@torch.no_grad()
def shown(tokens: list[str], model: WhoAndWhom, **mistakes: bool) -> Frame:
    """What the model answers at each verb of a sentence, and what each head looks at from there."""
    token_ids = VOCABULARY.encode_batch([tokens])
    verbs = torch.tensor(find_verbs(tokens))
    # Positions in float64: without the scale, scores of hundreds show what float32 has rounded.
    x = model.embedding(token_ids) + sines_and_cosines(len(tokens), model.attention.d_model)
    mask = padding_mask(token_ids, VOCABULARY.pad_id)
    output, weights = attend_wrongly(model.attention, x, mask, **mistakes)
    logits = model.read(output.expand(len(verbs), -1, -1), verbs)
    shares, best = torch.stack(logits, dim=1).softmax(dim=-1).max(dim=-1)  # (verb, 2)
    return {
        "tokens": tokens,
        "asking": verbs.tolist(),
        "weights": weights[0, :, verbs].transpose(0, 1),  # (verb, heads, key)
        "answers": VOCABULARY.decode(best.flatten().tolist()),  # who and whom of each verb
        "shares": shares,
    }


def break_it_explorer() -> Explorer:
    """Break the trained attention: five mistakes as switches, with the price of each beside it.

    The price is the number of verbs of 300 new sentences that lose an answer. A text field takes a
    sentence of the reader's own.

    Returns:
        The explorer, with controls ``wrong_split``, ``wrong_axis``, ``no_scale``,
        ``mask_too_late`` and ``no_transpose``.
    """
    tokens = SENTENCE.split() + [VOCABULARY.pad] * PADS
    model = load(8, 2).requires_grad_(False).double()
    right, of = count_right()
    places = range(len(MISTAKES))
    as_it_is = right[tuple(False for _ in places)]
    alone = [as_it_is - right[tuple(other == one for other in places)] for one in places]

    def frame(
        wrong_split: bool,
        wrong_axis: bool,
        no_scale: bool,
        mask_too_late: bool,
        no_transpose: bool,
    ) -> Frame:
        on = (wrong_split, wrong_axis, no_scale, mask_too_late, no_transpose)
        together = as_it_is - right[on]
        return {
            **shown(tokens, model, **dict(zip(MISTAKES, on, strict=True))),
            "right": right[on],
            "of": of,
            "lost": torch.tensor([*alone, together]).double()[:, None],  # (bar, 1)
        }

    def still(frame: Frame) -> Picture:
        weights = frame["weights"]
        words = [frame["tokens"][place] for place in frame["asking"]]
        return plot_matrices(
            {f"head {i}, without a mistake": weights[:, i] for i in range(weights.shape[1])},
            rows=words,
            columns=frame["tokens"],
            signed=False,
            alt=f"The sentence “{SENTENCE}” and two pads: the weights of its two verbs, without a "
            "mistake. Head 0 gives most of each verb's weight to the noun that acts, head 1 to the "
            "noun that it is done to, and neither gives any to a pad.",
        )

    controls = {
        name: Checkbox(value=False, description=label, indent=False)
        for name, label in MISTAKES.items()
    }
    page = page_weights(model, reads_out=True)
    words = {"verbs": list(ALL_VERBS), "vocabulary": list(VOCABULARY.tokens)}
    return explorer(
        "break_it",
        "Break it",
        controls,
        frame,
        still,
        models={"trained": page | words},
        reads=READS,
    )
