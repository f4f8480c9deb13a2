"""What a score depends on: a question and a name, at every pair of positions, for each scheme."""

import torch
from ipywidgets import Dropdown, SelectionSlider
from torch import Tensor

from attention.explore.explorer import Explorer, Frame, explorer
from attention.heads import split_heads
from attention.plots import Picture, plot_matrices
from attention.trained import last_speaker
from attention.trained.last_speaker import (
    LENGTH,
    NAMES,
    QUESTION,
    SCHEMES,
    WORDS,
    LastSpeaker,
    new_talks,
)

LONGEST = 64  # words of the talk
QUERIES = (*range(3, 35, 4), 39, 47, 55, 63)  # positions at which the question is asked
NAME = "ann"  # the word at every key
TALK = 5  # of 200: one in which each scheme does what it does in most


def positions_explorer() -> Explorer:
    """Explore what the score of a question and a name depends on: their positions or distance.

    Returns:
        The explorer, with controls ``scheme``, ``head`` and ``query``.
    """
    talks = new_talks(LONGEST, count=200)
    token_ids, speaker = talks.token_ids[TALK : TALK + 1], talks.speaker[TALK]

    def frame(scheme: str) -> Frame:
        model = last_speaker.load(scheme).requires_grad_(False).double()
        seq = LENGTH if scheme == "learned" else LONGEST
        queries = [query for query in QUERIES if query < seq]
        asked = [ask(model, token_ids[:, : query + 1]) for query in queries]
        accuracy = last_speaker.measured(scheme)
        return {
            "scores": scores_of(model, QUESTION, NAME, seq),
            "queries": list(QUERIES),
            "weights": torch.stack([weights for weights, _ in asked]),
            "shares": torch.stack([shares for _, shares in asked]),
            "speakers": [WORDS[speaker[query - 1]] for query in QUERIES],
            "words": [WORDS[i] for i in token_ids[0]],
            "names": list(NAMES),
            "trained": LENGTH,
            "lengths": list(accuracy),
            "accuracy": torch.tensor([list(accuracy.values())], dtype=torch.float64),
            "refusal": refusal(model, token_ids) if seq < LONGEST else "",
        }

    def still(frame: Frame) -> Picture:
        learned = frame["scores"][:, :LENGTH, :LENGTH].tril()
        return plot_matrices(
            {
                f"head {head}: row, position of “?”; column, position of “{NAME}”": learned[head]
                for head in (1, 3)
            },
            rows=[str(place) for place in range(LENGTH)],
            alt="Two heads of the rotary model: the score of a question with a name, a row for "
            "each position of the question, a column for each position of the name. Both maps are "
            "made of stripes along the diagonal: every pair that is as far apart has the same "
            "score.",
            numbers=False,
        )

    controls = {
        "scheme": Dropdown(options=SCHEMES, value="rotary", description="scheme"),
        "head": SelectionSlider(options=range(4), value=1, description="head"),
        "query": SelectionSlider(options=QUERIES, value=LENGTH - 1, description="query"),
    }
    return explorer(
        "positions", "Scores by position and distance", controls, frame, still, reads=None
    )


def scores_of(model: LastSpeaker, query: str, key: str, seq: int) -> Tensor:
    """The score of one word with another, at every pair of positions, (heads, query, key)."""
    attention, n_heads = model.attention, model.attention.n_heads
    x, y = (model.embed(torch.tensor([[WORDS.index(word)] * seq])) for word in (query, key))
    q, k = split_heads(attention.w_q(x), n_heads), split_heads(attention.w_k(y), n_heads)
    scores = attention.attend.scores(q, k)[0]
    return scores.masked_fill(torch.ones(seq, seq).triu(1).bool(), -torch.inf)


def ask(model: LastSpeaker, token_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Ask at the last position: weights (heads, LONGEST), 0 in the future, and a share per name."""
    token_ids = token_ids.clone()
    token_ids[0, -1] = WORDS.index(QUESTION)
    logits, weights = model(token_ids, last=True)
    future = LONGEST - token_ids.shape[1]
    return torch.nn.functional.pad(weights[0, :, 0], (0, future)), logits[0, 0].softmax(-1)


def refusal(model: LastSpeaker, token_ids: Tensor) -> str:
    """What the model says to a talk that is too long for it."""
    try:
        model(token_ids)
    except ValueError as error:
        return str(error)
    return ""
