"""Two heads to wire: what each query and each key reads, and what is copied from row to row."""

from functools import cache, partial
from string import ascii_lowercase as LETTERS

import torch
from ipywidgets import Dropdown
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from attention.dot_product import scaled_dot_product_attention
from attention.explore.explorer import Explorer, Frame, explorer
from attention.masks import causal_mask
from attention.plots import Picture, plot_matrices

LENGTH = 8  # tokens of a sequence
COUNT = 500  # sequences that every wiring is tried on
EXAMPLE = "cdkxqmbk"  # the sequence that is drawn
SHARP = 10_000.0  # times the dot product: the best key takes all the weight, equal ones share it
CLOSE = 1e-6  # shares that differ by less are equal

TOKEN, PLACE, BEFORE = "its token", "its position", "the previous position"
WROTE = "what layer 1 wrote"

Rows = dict[str, Float[Tensor, "batch seq letter_or_place"]]


def repeating_sequences(count: int) -> Int64[Tensor, "count seq"]:
    """Draw sequences that end in a letter that has come before; no other letter comes twice.

    The first of the two is never at position 0, which has no previous position.

    Returns:
        Token ids, (count, 8), the same at every call.

    Source:
        This book's own, after chapter 12's `kxcdqmk`.
    """
    generator = torch.Generator().manual_seed(0)
    letters = torch.rand(count, len(LETTERS), generator=generator).argsort(1)[:, : LENGTH - 1]
    first = torch.randint(1, LENGTH - 2, (count, 1), generator=generator)
    return torch.cat([letters, letters.gather(1, first)], dim=1)


def due(token_ids: Int64[Tensor, "batch seq"]) -> Int64[Tensor, " batch"]:
    """The token that followed the last token's earlier occurrence: the right answer, (batch,)."""
    is_first = token_ids[:, :-1] == token_ids[:, -1:]
    after = is_first.int().argmax(1, keepdim=True) + 1
    return token_ids.gather(1, after)[:, 0]


def rows_of(token_ids: Int64[Tensor, "batch seq"]) -> Rows:
    """What each row holds before layer 1, each part (batch, seq, letter_or_place).

    A token is a 1 among the first 26 columns and a position is a 1 among the last 8, so that the
    product of a token with a position is 0. Position 0 has no previous position, so all columns of
    that part are 0 there.
    """
    tokens = F.pad(F.one_hot(token_ids, len(LETTERS)).double(), (0, LENGTH))
    places = F.pad(torch.eye(LENGTH, dtype=torch.double), (len(LETTERS), 0))
    places = places.expand(len(token_ids), -1, -1)
    return {TOKEN: tokens, PLACE: places, BEFORE: F.pad(places[:, :-1], (0, 0, 1, 0))}


def look(rows: Rows, query: str, key: str, copies: str) -> tuple[Tensor, Tensor]:
    """One head, wired to parts of the rows: (output, weights), as in scaled dot-product attention.

    Returns:
        output (batch, seq, letter_or_place) and weights (batch, query, key), under a causal mask.
    """
    parts = (rows[part] for part in (query, key, copies))
    return scaled_dot_product_attention(*parts, causal_mask(LENGTH), scale=SHARP)


def leading(output: Float[Tensor, "batch letter_or_place"]) -> Bool[Tensor, "batch letter"]:
    """Which letters have the largest share of an output; none where a position was written."""
    shares = output[:, : len(LETTERS)]
    return (shares > shares.amax(1, keepdim=True) - CLOSE) & (shares > CLOSE)


def written(output: Float[Tensor, "seq letter_or_place"]) -> list[str]:
    """What was written into each row: a letter or a position, two of them, or a mix of more."""
    names = [*LETTERS, *map(str, range(LENGTH))]
    held = [[names[i] for i in (row > CLOSE).nonzero()[:, 0].tolist()] for row in output]
    return ["+".join(each) if len(each) < 3 else "mix" for each in held]


def wire_two_heads_explorer() -> Explorer:
    """Wire two heads, one in each layer, so that they find what followed a token last time.

    For each head the reader chooses what its query reads, what its key reads, and what it copies.
    Every wiring runs on the same 500 sequences.

    Returns:
        The explorer, with controls ``layers``, ``query_0``, ``key_0``, ``copies_0``, ``query_1``,
        ``key_1`` and ``copies_1``.
    """
    example = torch.tensor([[LETTERS.index(letter) for letter in EXAMPLE]])
    # The example comes before the sequences that are counted.
    token_ids = torch.cat([example, repeating_sequences(COUNT)])
    answers, given = due(token_ids), rows_of(token_ids)
    look_first = cache(partial(look, given))  # layer 2 is wired in many ways after it

    def frame(
        layers: int,
        query_0: str,
        key_0: str,
        copies_0: str,
        query_1: str,
        key_1: str,
        copies_1: str,
    ) -> Frame:
        output, weights = look_first(query_0, key_0, copies_0)
        shown = {"layer0": weights[0], "wrote": written(output[0])}
        if layers == 2:
            output, weights = look(given | {WROTE: output}, query_1, key_1, copies_1)
            shown["layer1"] = weights[0]
        leads = leading(output[:, -1])
        # An answer is right where the right letter leads alone.
        is_right = leads.sum(1).eq(1) & leads.gather(1, answers[:, None])[:, 0]
        return {
            "tokens": list(EXAMPLE),
            **shown,
            "answer": [LETTERS[i] for i in leads[0].nonzero()[:, 0].tolist()],
            "due": LETTERS[answers[0]],
            "right": int(is_right[1:].sum()),
            "of": COUNT,
        }

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {f"layer {i + 1}": frame[f"layer{i}"] for i in (0, 1)},
            rows=frame["tokens"],
            signed=False,
            columns=frame["tokens"],
            alt=f"The sequence {' '.join(EXAMPLE)} and the weights of two heads, one in each "
            "layer, in both of which the query and the key read the token. Each row gives all its "
            "weight to itself, and the last, the second k, half to itself and half to the first.",
        )

    return explorer(
        "wire_two_heads",
        "Wire two heads",
        {
            "layers": menu("layers", [2, 1]),
            "query_0": menu("layer 1: query", [TOKEN, PLACE, BEFORE]),
            "key_0": menu("layer 1: key", [TOKEN, PLACE]),
            "copies_0": menu("layer 1: copies", [TOKEN, PLACE]),
            "query_1": menu("layer 2: query", [TOKEN, WROTE]),
            "key_1": menu("layer 2: key", [TOKEN, BEFORE, WROTE]),
            "copies_1": menu("layer 2: copies", [TOKEN, WROTE]),
        },
        frame,
        still,
        reads=None,
    )


def menu(description: str, options: list) -> Dropdown:
    return Dropdown(
        options=options, description=description, style={"description_width": "initial"}
    )
