"""Two stories of the same words, and whom a model takes for who and for whom."""

import math
from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point


def two_stories(
    stories: Sequence[Sequence[str]],
    verbs: Sequence[int],
    who: Float[Tensor, "story seq"],
    whom: Float[Tensor, "story seq"],
) -> Drawing:
    """Draw a line from each verb to each word, as wide as the model's probability for it.

    Args:
        stories: the words of each.
        verbs: the place of each verb.
        who: the probability of each word as the answer to who, (story, seq).
        whom: the same for whom.

    Example:
        >>> import torch
        >>> from attention.drawings import two_stories
        >>> one = torch.tensor([[1.0, 0, 0]])
        >>> two_stories([["dogs", "chase", "cats"]], [1], one, one.flip(1))
        Drawing of who 0 (3,), whom 0 (3,)
    """
    values = {}
    for nth in range(len(stories)):
        values |= {f"who {nth}": who[nth], f"whom {nth}": whom[nth]}

    def paint(canvas: Canvas) -> Real:
        across = 1 if canvas.narrow else len(stories)
        share = canvas.width / across
        tall = 172 if canvas.narrow else 154
        for nth, story in enumerate(stories):
            left, line = share * (nth % across), 72 + tall * (nth // across)
            edge = 8 if canvas.narrow else 20
            pitch = (share - 2 * edge) / len(story)
            middles = [left + edge + (i + 0.5) * pitch for i in range(len(story))]
            verb = middles[verbs[nth]]
            for i, (word, x) in enumerate(zip(story, middles, strict=True)):
                canvas.text(x, line + 5, word, "bold" if i == verbs[nth] else "", size=14)
            for question, up in (("who", -1), ("whom", 1)):
                answers = values[f"{question} {nth}"].tolist()
                foot, height = line + (-12 if up < 0 else 16), 46
                arcs = [
                    f"M{point(verb, foot)}C{point(verb, foot + up * height)} "
                    f"{point(x, foot + up * height)} {point(x, foot)}"
                    for x in middles
                ]
                canvas.flows(f"{question} {nth}", answers, arcs, "output", widest=10)
                for x, share_of in zip(middles, answers, strict=True):
                    if share_of > 0.02:
                        # Beside the first or the last word it would stand outside.
                        at = min(max(x, left + 40), left + share - 40), foot + up * (height + 4) + 5
                        said = f"{question} {share_of:.2f}"
                        canvas.text(*at, said, "output of bold", size=12)
        return tall * math.ceil(len(stories) / across)

    told = []
    for nth, story in enumerate(stories):
        answers = [
            f"{question}: "
            + " or ".join(
                f"{word} {p:.2f}"
                for word, p in zip(story, values[f"{question} {nth}"].tolist(), strict=True)
                if p > 0.02
            )
            for question in ("who", "whom")
        ]
        told.append(f"“{' '.join(story)}”: from “{story[verbs[nth]]}” to {', '.join(answers)}.")
    return Drawing(paint, " ".join(told), values)
