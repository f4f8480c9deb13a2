"""Numbers as heights: bars, dots and curves."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, number, point


def softmax_steps(scores: Float[Tensor, " key"], labels: Sequence[str]) -> dict[str, Drawing]:
    """Draw scores, their powers and the shares as bars, one of the three lit in each step.

    Args:
        scores: (key,), a few.
        labels: the name of each key.

    Example:
        >>> import torch
        >>> from attention.drawings import softmax_steps
        >>> softmax_steps(torch.tensor([2.0, 1.0, 0.0]), ["a", "b", "c"])["shares"]
        Drawing of scores (3,), powers (3,), shares (3,)
    """
    powers = scores.exp()
    shares = powers / powers.sum()
    values = {"scores": scores, "powers": powers, "shares": shares}
    total = f"{powers.sum():.2f}"
    # A title, its look, and what to see, in two lines.
    panels = (
        ("scores s", "scores", ("any numbers,", "above or below 0")),
        ("e to the power s", "x", ("all above 0: 1 more in score", "is 2.72 times the power")),
        ("shares", "weights", ("each divided by the sum,", f"{total}: together 1")),
    )
    told = "; ".join(
        f"{title} {', '.join(f'{value:.2f}' for value in values[name].tolist())}"
        for name, (title, *_) in zip(values, panels, strict=True)
    )

    def draw(lit: int) -> Drawing:
        def paint(canvas: Canvas) -> Real:
            wide, tall = 50, 74 if canvas.narrow else 120
            places = canvas.panels(3, tall + 106, across=3)
            for nth, (name, (title, look, words)) in enumerate(zip(values, panels, strict=True)):
                value, place = values[name], places[nth]
                left, line = place.middle[0] - wide * len(scores) / 2 + 6, place.y + tall + 44
                middle = left + wide * (len(scores) - 0.3) / 2
                with canvas.group("" if nth == lit else "faint"):
                    canvas.text(middle, line - tall - 24, title, f"{look} of bold")
                    how = {"unit": tall / float(value.abs().max()), "wide": wide, "labels": labels}
                    canvas.bars(name, left, line, value.tolist(), look, **how)
                    for row, said in enumerate(words):
                        canvas.text(middle, line + 36 + 15 * row, said, "quiet", size=12)
                if place.x:
                    canvas.arrow(place.x - 14, line - tall / 2, place.x + 14, line - tall / 2)
            return line + 60

        alt = f"Softmax of {len(scores)} scores: {told}. Lit: {panels[lit][0]}."
        return Drawing(paint, alt, values)

    return {name: draw(nth) for nth, name in enumerate(values)}


def ladder(keys: Float[Tensor, " key"], words: Sequence[str], needs: Mapping[str, int]) -> Drawing:
    """Draw the keys of a head with d_key 1 as heights, and which words a query can put first.

    Args:
        keys: (key,), one number for each word.
        words: the words.
        needs: for each word that asks, the position of the word whose key should score highest.

    Example:
        >>> import torch
        >>> from attention.drawings import ladder
        >>> ladder(torch.tensor([2.0, 1.0, -1.0]), ["cat", "dog", "saw"], {"saw": 1})
        Drawing of keys (3,)
    """
    heights = keys.tolist()
    order = sorted(range(len(words)), key=lambda j: -heights[j])
    notes = {order[0]: ["any query above 0 finds this"], order[-1]: ["any below 0 finds this"]}
    for asker, j in needs.items():
        notes.setdefault(j, []).append(f"“{asker}” needs this")

    def paint(canvas: Canvas) -> Real:
        gap, unit, top = 17, 46, 44
        pole, beside = (40, 66) if canvas.narrow else (200, 240)
        zero = top + unit * heights[order[0]]
        canvas.text(pole, 20, "keys", "k of bold")
        canvas.path(f"M{point(pole, top - 12)}V{zero - unit * heights[order[-1]] + 12:.1f}", "edge")
        canvas.path(f"M{point(pole - 8, zero)}H{pole + 8}", "edge")
        canvas.text(pole - 12, zero + 4, "0", "quiet", size=11, anchor="end")
        y = top - gap
        for j in order:
            rung = zero - unit * heights[j]
            y = max(y + gap, rung)
            canvas.path(f"M{point(pole, rung)}L{point(beside - 6, y)}", "quiet edge")
            canvas.text(beside, y + 4, f"{words[j]} {j}", "k of bold", size=13, anchor="start")
            told = notes.get(j, [])
            for nth, note in enumerate(told if canvas.narrow else ["; ".join(told)] * bool(told)):
                y += 15 * (nth > 0)
                canvas.text(beside + 66, y + 4, note, size=12, anchor="start")
        canvas.points("keys", [pole] * len(words), zero, heights, "k fill", unit=unit)
        return y + 16

    rungs = ", ".join(f"{words[j]} {j} at {heights[j]:.2f}".replace("-", "−") for j in order)
    told = " ".join(f"{words[j]} {j}: {'; '.join(notes[j])}." for j in order if j in notes)
    return Drawing(paint, f"The keys as heights, from the top: {rungs}. {told}", {"keys": keys})


def listening(rows: Mapping[str, Float[Tensor, " key"]]) -> Drawing:
    """Draw how far a weight moves with its own score, and where the weights of two rows lie.

    Args:
        rows: an open row of weights and a sure one, by their names.

    Example:
        >>> import torch
        >>> from attention.drawings import listening
        >>> listening({"open": torch.tensor([0.6, 0.4]), "sure": torch.tensor([1.0, 0.0])})
        Drawing of open (2,), sure (2,)
    """
    rates = {name: a * (1 - a) for name, a in rows.items()}

    def paint(canvas: Canvas) -> Real:
        left, right, top = 40, canvas.width - 40, 56
        tall = 130 if canvas.narrow else 150
        line, unit, across = top + tall, tall / 0.25, right - left
        steps = [i / 50 for i in range(51)]
        hill = [(left + across * a, line - unit * a * (1 - a)) for a in steps]
        canvas.curve(hill, "weights stroke", stroke_width=2)
        canvas.path(f"M{point(left - 8, line)}H{right + 8}", "edge")
        canvas.text(canvas.width / 2, 18, "how far a weight moves with its score", "bold")
        for a in (0, 0.5, 1):
            canvas.text(left + across * a, line + 22, f"{a:g}", "quiet", size=11)
        canvas.text(left + across * 0.75, line + 22, "weight a", "quiet", size=12)
        for nth, (name, a) in enumerate(rows.items()):
            xs, heights = [left + across * float(one) for one in a], rates[name].tolist()
            for x, rate in zip(xs, heights, strict=True):
                canvas.path(f"M{point(x, line)}V{line - unit * rate:.1f}", "quiet edge")
            if nth == 0:
                for x, rate, one in zip(xs, heights, a.tolist(), strict=True):
                    at = x - 9, line - unit * rate - 6
                    canvas.text(*at, f"{one:.2f}", "weights of", size=12, anchor="end")
            look, radius = ("x stroke", 8) if nth else ("weights fill", 5)
            canvas.points(name, xs, line, heights, look, unit=unit, radius=radius)
        open_row, sure_row = rows
        top_dot = left + across * float(rows[open_row].max())
        canvas.text(top_dot + 8, top - 10, f"the {open_row} row", "weights of bold", anchor="start")
        canvas.text(left - 14, line + 38, f"the {sure_row} row", "bold", size=13, anchor="start")
        canvas.text(right + 14, line + 38, f"the {sure_row} row", "bold", size=13, anchor="end")
        return line + 48

    told = "; ".join(
        f"the {name} row, weights {', '.join(f'{one:.2f}' for one in a.tolist())}, moves at "
        f"{', '.join(f'{one:.2f}' for one in rates[name].tolist())}"
        for name, a in rows.items()
    )
    alt = (
        "How far a weight a moves with its own score, a times 1 minus a: 0 where a is 0 or 1, "
        f"most, 0.25, at 0.5. On this hill: {told}."
    )
    return Drawing(paint, alt, rates)


SHOWN = 10  # of a row's weights, the largest first


def weights_by_size(scores: Mapping[int, Float[Tensor, "*sample key"]]) -> Drawing:
    """Draw the largest weights of rows of unscaled scores, with and without the divisor.

    Each bar is the mean over all rows: of their largest weight, of their second largest, …

    Args:
        scores: unscaled, (…, key), by d_key.

    Example:
        >>> import torch
        >>> from attention.drawings import weights_by_size
        >>> weights_by_size({4: torch.zeros(5, 2), 64: torch.zeros(5, 2)})
        Drawing of d_key 4, unscaled (2,), d_key 4, scaled (2,), d_key 64, unscaled (2,), \
d_key 64, scaled (2,)
    """
    values = {}
    for d_key, unscaled in scores.items():
        for how, divisor in (("unscaled", 1), ("scaled", d_key**0.5)):
            weights = (unscaled / divisor).softmax(dim=-1).sort(dim=-1, descending=True).values
            values[f"d_key {d_key}, {how}"] = weights.flatten(0, -2).mean(dim=0)[:SHOWN]
    n_keys = next(iter(scores.values())).shape[-1]
    rows = ("unscaled", "weights", "not divided"), ("scaled", "weights", "divided by √d_key")

    def paint(canvas: Canvas) -> Real:
        # A column for each d_key; on a phone a row for each. As high as the highest bar in it.
        high = max(float(values[f"d_key {d_key}, scaled"][0]) for d_key in scores)
        tall, bar, pitch = (84, 13, 84 + 48) if canvas.narrow else (96, 18, 96 * high + 50)
        places = canvas.panels(2 * len(scores), pitch, across=len(scores), on_phone=2)
        words = f"the {SHOWN} largest of {n_keys} weights, before training"
        canvas.text(canvas.width / 2, 16, words, "quiet", size=12)
        for nth, d_key in enumerate(scores):
            for which, (how, look, words) in enumerate(rows):
                place = places[2 * nth + which if canvas.narrow else len(scores) * which + nth]
                middle, line = place.middle[0], place.y + tall + 52
                left, name = middle - bar * SHOWN / 2, f"d_key {d_key}, {how}"
                largest, second, *_ = weights = values[name].tolist()
                if which == 0:
                    title = canvas.width / 2 if canvas.narrow else middle
                    canvas.text(title, line - tall - 12, f"d_key {d_key}", "bold")
                canvas.bars(name, left, line, weights, look, unit=tall, wide=bar, digits=None)
                at = line - max(tall * largest - 12, tall * second + 5)
                said = f"{largest:.2f}", f"{look} of bold"
                canvas.text(left + 1.25 * bar, at, *said, anchor="start")
                canvas.text(middle, line + 16, words, "quiet", size=12)
        return line + 28

    told = "; ".join(
        f"d_key {d_key}: {values[f'd_key {d_key}, unscaled'][0]:.2f} unscaled, "
        f"{values[f'd_key {d_key}, scaled'][0]:.2f} divided by its root"
        for d_key in scores
    )
    alt = (
        f"The {SHOWN} largest of {n_keys} weights before training, the largest first, at each "
        f"d_key, unscaled and divided by √d_key. The largest: {told}."
    )
    return Drawing(paint, alt, values)


HIGH = 110  # of the tallest panel of a head


def score_by_position(
    scores: Float[Tensor, "asker heads word position"],
    words: Sequence[str],
    askers: Sequence[tuple[str, int]],
    answers: Sequence[tuple[str, Sequence[int]]],
) -> Drawing:
    """Draw the scores of two words at every position, with a panel for each head and asking verb.

    Args:
        scores: (asker, heads, word, position).
        words: two; the first is a noun.
        askers: each verb that asks, and its position.
        answers: for each head, what it answers, and how many positions after the verb the answer is
            (a number below zero if it is before the verb).

    Example:
        >>> import torch
        >>> from attention.drawings import score_by_position
        >>> scores = torch.ones(2, 1, 2, 6)
        >>> score_by_position(scores, ["cat", "the"], [("saw", 2), ("bit", 4)], [("who", [-1])])
        Drawing of head 0, saw, cat (6,), head 0, saw, the (6,), head 0, bit, cat (6,), \
head 0, bit, the (6,)
    """
    n_askers, n_heads, _, n_positions = scores.shape
    values = {
        f"head {h}, {asker}, {word}": scores[a, h, w]
        for h in range(n_heads)
        for a, (asker, _) in enumerate(askers)
        for w, word in enumerate(words)
    }
    highs = scores.amax(dim=(-2, -1)).clamp(min=0).tolist()  # (asker, heads), the line of 0 within
    lows = scores.amin(dim=(-2, -1)).clamp(max=0).tolist()

    def paint(canvas: Canvas) -> Real:
        places = iter(canvas.panels(n_heads * n_askers, HIGH + 118, across=n_askers))
        for h, (answer, offsets) in enumerate(answers):
            # One scale for all panels of a head, so that its hills can be compared.
            unit = HIGH / max(highs[a][h] - lows[a][h] for a in range(n_askers))
            for a, (asker, asks) in enumerate(askers):
                place = next(places)
                left, top, step = place.x + 34, place.y + 60, (place.width - 84) / (n_positions - 1)
                xs = [left + step * nth for nth in range(n_positions)]
                zero, bottom = top + unit * highs[a][h], top + HIGH + 26
                title = f"head {h}, “{asker}” asks"
                canvas.text(left - 24, top - 34, title, f"head-{h} of bold", anchor="start")
                first, last = (xs[asks + end(offsets)] for end in (min, max))
                band = first - step * 0.45, top - 12, last - first + step * 0.9, HIGH + 22
                canvas.rectangle(*band, f"head-{h} fill", fill_opacity=0.25)
                canvas.text((first + last) / 2, top - 16, answer, f"head-{h} of bold", size=12)
                canvas.path(f"M{point(xs[0] - 8, zero)}H{xs[-1] + 8:g}", "edge")
                canvas.text(xs[0] - 12, zero + 4, "0", "quiet", size=11, anchor="end")
                noun = f"head-{h} stroke", f"head-{h} fill", f"head-{h} of bold", 4
                looks = noun, ("edge", "quiet", "quiet", 2.5)
                for word, (line, dots, of, radius) in zip(words, looks, strict=True):
                    name = f"head {h}, {asker}, {word}"
                    heights = values[name].tolist()
                    curve = [(x, zero - unit * y) for x, y in zip(xs, heights, strict=True)]
                    canvas.curve(curve, line, stroke_width=1.5)
                    canvas.points(name, xs, zero, heights, dots, unit=unit, radius=radius)
                    end = xs[-1] + 12, curve[-1][1] + 4
                    canvas.text(*end, word, of, size=12, anchor="start")
                for nth, x in enumerate(xs):
                    canvas.text(x, bottom, str(nth), "" if nth == asks else "quiet", size=11)
                canvas.text(xs[-1] + 16, bottom + 16, "position", "quiet", size=11, anchor="end")
                canvas.text(xs[asks], bottom + 16, asker, "bold", size=12)
        return bottom + 26

    told = []
    for h, (answer, offsets) in enumerate(answers):
        for a, (asker, asks) in enumerate(askers):
            there = [
                " and ".join(f"{scores[a, h, w, asks + off]:.1f}" for off in offsets)
                for w in range(len(words))
            ]
            right = " and ".join(str(asks + off) for off in offsets)
            told.append(
                f"Head {h}, “{asker}” asks from position {asks}: where {answer} is, position "
                f"{right}, “{words[0]}” scores {there[0]} and “{words[1]}” {there[1]}."
            )
    alt = (
        f"A panel for each head and each verb that asks: the scores of “{words[0]}” and of "
        f"“{words[1]}” in positions 0 to {n_positions - 1}, two lines of one shape, that of "
        f"“{words[1]}” lower. {' '.join(told)}"
    ).replace(" -", " −")
    return Drawing(paint, alt, values)


def loss_of_share(share: Float[Tensor, ""], word: str) -> Drawing:
    """Draw what a share of the right word costs: at 1, at each halving, and at a model's share.

    Args:
        share: what a model gives to the right word, a scalar above 0 and below 1.
        word: the right one.

    Example:
        >>> import torch
        >>> from attention.drawings import loss_of_share
        >>> loss_of_share(torch.tensor(0.1), "dog")
        Drawing of halvings (4,), model (1,)
    """
    p = share.item()
    loss = -math.log(p)
    halvings = torch.arange(1 + math.floor(-math.log2(p)))  # from a share of 1 on
    shares, losses = 0.5**halvings, halvings * math.log(2)

    def paint(canvas: Canvas) -> Real:
        left, right, top = 48, canvas.width - 24, 34
        tall, across = 240, right - left
        unit = tall / max(loss, float(losses[-1]))
        line = top + tall
        ends = math.log(min(p, float(shares[-1])))
        along = [math.exp(ends * (1 - i / 80)) for i in range(81)]
        xs = [left + across * one for one in shares.tolist()]
        canvas.text(6, 16, "loss", "bold", anchor="start")
        canvas.path(f"M{left},{top - 10}V{line}H{right + 8}", "edge")
        for x, height in zip(xs, losses.tolist(), strict=True):
            y = line - unit * height
            canvas.path(f"M{point(left, y)}H{x:.1f}", "quiet edge", stroke_dasharray="3 4")
            canvas.text(left - 6, y + 4, f"{height:.2f}", "quiet", size=12, anchor="end")
        curve = [(left + across * one, line + unit * math.log(one)) for one in along]
        canvas.curve(curve, "x stroke", stroke_width=2)
        canvas.points("halvings", xs, line, losses.tolist(), "x stroke", unit=unit)
        at = left + across * p
        canvas.points("model", [at], line, [loss], "output fill", unit=unit, radius=5)
        y = line - unit * loss
        canvas.text(at + 14, y + 2, f"“{word}” before training:", "output of bold", anchor="start")
        said = f"share {p:.3f}, loss {loss:.2f}"
        canvas.text(at + 14, y + 18, said, "output of bold", anchor="start")
        middle = left + across * 0.3
        between = line - unit * float(losses[-1]) / 2
        canvas.text(middle, between, "each halving of the share", size=12, anchor="start")
        canvas.text(middle, between + 16, f"adds {math.log(2):.2f}", size=12, anchor="start")
        for mark in shares[:3].tolist():
            canvas.text(left + across * mark, line + 18, f"{mark:g}", "quiet", size=12)
        canvas.text(left, line + 18, "0", "quiet", size=12)
        canvas.text(left + across * 0.75, line + 18, "share p", "bold", size=12)
        return line + 28

    alt = (
        "The loss, minus the logarithm of the share p of the right word: 0 at a share of 1, and "
        f"{math.log(2):.2f} more for each halving, so that it is {losses[-1]:.2f} after "
        f"{len(halvings) - 1} of them, at a share of {shares[-1]:.3f}. The model gives “{word}” "
        f"{p:.3f} before training, which costs {loss:.2f}."
    )
    return Drawing(paint, alt, {"halvings": losses, "model": torch.tensor([loss])})


UNIT = 1.5  # the height of 1, one scale for all panels


def distance_waves(
    back: Float[Tensor, " place"],
    height: Float[Tensor, " pair"],
    top: Float[Tensor, " pair"],
    period: Float[Tensor, " pair"],
    trained: int,
) -> Drawing:
    """Draw what each pair adds to a score, by how many positions back the key is, and the sum.

    Args:
        back: positions back; below 0 the key is ahead of the query, where a causal mask hides it.
        height: of each pair's wave.
        top: how many positions back the wave of each pair is highest.
        period: its length in positions.
        trained: how many distances, from 0 on, training had.

    Example:
        >>> import torch
        >>> from attention.drawings import distance_waves
        >>> one = torch.ones(1)
        >>> distance_waves(torch.arange(-8.0, 24), 3 * one, -2 * one, 20 * one, trained=16)
        Drawing of pair 0 (32,), score (32,)
    """
    waves = height[:, None] * (2 * math.pi * (back - top[:, None]) / period[:, None]).cos()
    values = {f"pair {i}": wave for i, wave in enumerate(waves)} | {"score": waves.sum(dim=0)}
    first, last = float(back[0]), float(back[-1])
    tallest = int(height.argmax())
    peaks = [
        place
        for turn in range(-9, 10)
        if first < (place := float(top[tallest] + turn * period[tallest])) < last
    ]

    def paint(canvas: Canvas) -> Real:
        left, above, hidden = 150, 26, ("ahead: the mask", "hides it")
        if canvas.narrow:
            left, above, hidden = 10, 40, ("ahead:", "masked")
        step = (canvas.width - 14 - left) / (last - first)

        def across(place: Real) -> Real:
            return left + step * (place - first)

        xs = [across(place) for place in back.tolist()]
        y = 40
        panels = []
        for name, wave in values.items():
            y += above + (24 if name == f"pair {tallest}" else 0)  # for where its tops are
            top_of, low = max(float(wave.max()), 4), min(float(wave.min()), -4)
            panels.append((name, wave, y, y + UNIT * top_of))
            y += UNIT * (top_of - low)
        bottom = y + 8
        here = across(0) - step / 2
        band = here, 38, trained * step, bottom - 38
        canvas.rectangle(*band, "x fill", fill_opacity=0.13)
        canvas.text(here + trained * step / 2, 30, "in training", "bold", size=12)
        canvas.path(f"M{point(here, 38)}V{bottom:.1f}", "cut")
        for line, words in enumerate(hidden):
            canvas.text((left + here) / 2, 14 + 16 * line, words, "quiet", size=12)
        end = here + trained * step
        canvas.text((end + xs[-1]) / 2, 30, "never in training", "quiet", size=12)
        for nth, (name, wave, start, zero) in enumerate(panels):
            title, about, look, color, wide = (
                (name, f"{period[nth]:,.0f} places long", "bold", "x", 1.5)
                if name != "score"
                else ("their sum: the score", "", "scores of bold", "scores", 2)
            )
            if canvas.narrow:
                over = start - (46 if nth == tallest else 20)
                places = (end + 6, over), (end + 48, over)
            else:
                places = (6, zero), (6, zero + 16)
            canvas.text(*places[0], title, look, size=12, anchor="start")
            canvas.text(*places[1], about, "quiet", size=12, anchor="start")
            canvas.path(f"M{point(xs[0], zero)}H{xs[-1]:.1f}", "edge")
            curve = [(x, zero - UNIT * value) for x, value in zip(xs, wave.tolist(), strict=True)]
            canvas.curve(curve, f"{color} stroke", stroke_width=wide)
            canvas.points(name, xs, zero, wave.tolist(), f"{color} fill", unit=UNIT, radius=1.4)
            for place in peaks if nth == tallest else ():
                x, y = across(place), zero - UNIT * float(height[nth])
                canvas.arrow(x, y - 20, x, y - 4, "mistake")
                within = min(max(x, left + 34), canvas.width - 36)
                canvas.text(within, y - 24, f"top at {number(place, 1)}", "bold", size=11)
        for place in range(-16, round(last) + 1, 16):
            if place >= first:
                canvas.text(across(place), bottom + 16, number(place, 0), "quiet", size=11)
        canvas.text(canvas.width / 2, bottom + 34, "places back", "quiet", size=12)
        return bottom + 42

    behind, seen = back[back >= 0], values["score"][back >= 0]
    told = "; ".join(
        f"pair {i}, {period[i]:,.0f} places long and {height[i]:.1f} high" for i in range(len(top))
    )
    alt = (
        f"A score by how many places back the key stands, as a sum of waves: {told}. Training had "
        f"0 to {trained - 1} places back. The tallest wave, pair {tallest}, is at its top "
        f"{' and '.join(f'{place:.1f}' for place in peaks)} places back (below 0 is ahead, where "
        f"the mask hides it). Their sum is {seen[0]:.1f} at {behind[0]:.0f} places back, falls to "
        f"{seen.min():.1f} at {behind[seen.argmin()]:.0f}, and is highest, {seen.max():.1f}, at "
        f"{behind[seen.argmax()]:.0f}."
    ).replace(" -", " −")
    return Drawing(paint, alt, values)


LEAST, MOST = 0.5, 4096.0  # FLOPs a byte, the ends of the axis


def roofline(
    intensity: Float[Tensor, " work"], names: Sequence[str], *, bandwidth: Real, peak: Real
) -> Drawing:
    """Draw FLOPs a second over FLOPs a byte, both on logarithmic axes, and each workload as a dot.

    Args:
        intensity: FLOPs a byte, (work,), each between 0.5 and 4,096.
        names: what each is called.
        bandwidth: bytes a second.
        peak: FLOPs a second.

    Source:
        Williams, Waterman and Patterson 2009.

    Example:
        >>> import torch
        >>> from attention.drawings import roofline
        >>> roofline(torch.tensor([1.0, 500.0]), ["decode", "prefill"], bandwidth=1e12, peak=1e14)
        Drawing of attainable (2,)
    """
    ridge = peak / bandwidth
    attained = (intensity.double() * bandwidth).clamp(max=peak) / 1e12  # TFLOP/s
    heights = (attained / (LEAST * bandwidth / 1e12)).log10()  # above the axis, in decades

    def paint(canvas: Canvas) -> Real:
        left, right, top = 14, canvas.width - 14, 56
        line = top + 250
        across = (right - left) / math.log2(MOST / LEAST)
        unit = (line - top) / math.log10(ridge / LEAST)

        def at(per_byte: Real) -> float:
            return left + across * math.log2(per_byte / LEAST)

        roof = [(left, line), (at(ridge), top), (right, top)]
        canvas.text(left, 16, "FLOPs a second", "bold", size=12, anchor="start")
        canvas.curve(roof, "x stroke", stroke_width=2)
        canvas.path(f"M{point(at(ridge), top)}V{line}", "quiet edge", stroke_dasharray="3 4")
        canvas.text(right, top - 8, f"peak: {peak / 1e12:.0f} TFLOP/s", size=12, anchor="end")
        canvas.text(at(ridge), top - 24, f"ridge: {ridge:.0f}", "bold", size=12)
        slope = at(2.5) - 8, line - unit * math.log10(2.5 / LEAST) - 10
        canvas.text(*slope, f"{bandwidth / 1e12:g} TB/s", size=12, anchor="end")
        canvas.path(f"M{left},{line}H{right}", "edge")
        for mark in (1, 8, 64, 512, 4096):
            anchor = "end" if mark == MOST else "middle"
            canvas.text(at(mark), line + 16, f"{mark:,}", "quiet", size=12, anchor=anchor)
        canvas.text(right, line + 34, "FLOPs a byte", "bold", size=12, anchor="end")
        xs = [at(per_byte) for per_byte in intensity.tolist()]
        canvas.points("attainable", xs, line, heights.tolist(), "output fill", unit=unit, radius=5)
        for x, height, per_byte, name in zip(
            xs, heights.tolist(), intensity.tolist(), names, strict=True
        ):
            y = line - unit * height
            if per_byte > ridge:
                place, anchor = (x, y + 20), "middle"
            elif 2 * x > canvas.width:
                place, anchor = (x - 10, y), "end"
            else:
                place, anchor = (x + 10, y + 10), "start"
            canvas.text(*place, f"{name}: {per_byte:,.0f}", size=12, anchor=anchor)
        return line + 44

    told = ", ".join(
        f"{name} {per_byte:,.0f} FLOPs a byte and at most {rate:,.3g} TFLOP/s"
        for name, per_byte, rate in zip(names, intensity.tolist(), attained.tolist(), strict=True)
    )
    alt = (
        f"FLOPs a second over FLOPs a byte. A slope, where {bandwidth / 1e12:g} TB/s of memory set "
        f"the limit, rises to the ridge at {ridge:.0f} FLOPs a byte; from there on a flat roof at "
        f"{peak / 1e12:.0f} TFLOP/s. On it, from left to right: {told}."
    )
    return Drawing(paint, alt, {"attainable": heights})
