"""The table of drawings: how each is called, and the tensors that must stand in what it draws.

A row is a function with the drawing's name. It yields what the drawing makes of some arguments,
each with its tensors, computed here once more in plain torch or by the model itself.
"""

import cmath
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

import attention
from attention import drawings, running_example, split_heads
from attention.cost.decode import H100
from attention.drawings import Drawing
from attention.embedding import sines_and_cosines
from attention.trained import dates, induction, last_speaker, relative_clauses, who_and_whom
from attention.trained.who_and_whom import VOCABULARY
from tests.unit.drawings.reading import elements


class Shown(NamedTuple):
    """What a drawing must show.

    Attributes:
        drawing: as it is made.
        tensors: by name; None where a test of the drawing's own reads what it draws.
        alt: what its words say.
        written: what stands in both of its SVGs.
        atol: how far what is read back may be from the tensors: half of the finest shade or line.
    """

    drawing: Drawing
    tensors: dict[str, Tensor] | None
    alt: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    atol: float = 0.02


SENTENCE = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "chased", "the", "other", "cat"]
STORY = ["a", "dog", "chased", "the", "red", "ball"]


def embedded(model, *sentences):
    return model.embed(VOCABULARY.encode_batch([list(each) for each in sentences]))


def of_heads(layers):
    """What these layers make of the first sentence of the running example: (heads, seq, d_key)."""
    return [split_heads(layer(running_example().x), 2)[0] for layer in layers]


# ---------------------------------------------------------------------------------------- Part I


def module_map():
    yield Shown(drawings.module_map(), {})
    for lit in range(1, 8):
        yield Shown(drawings.module_map(lit), {}, alt=(f"Lit: what chapter {lit} builds.",))
    by_step = (
        "Mistakes: 9, 10 at project; 7 at split; 1, 2 at q · k ÷ √d_key; "
        "3, 4, 5, 6 at mask, softmax; 8 at merge."
    )
    yield Shown(drawings.module_map(mistakes=TEN_MISTAKES), {}, alt=(by_step,))


TEN_MISTAKES = ["scores"] * 2 + ["weights"] * 4 + ["heads", "merged"] + ["Q, K, V"] * 2


def clock_hands():
    """The angle is pos / 10000^(2i/d_model), clockwise from twelve."""
    for length, d_model in ((6, 8), (3, 4)):
        hands = {}
        for i in range(d_model // 2):
            angles = [pos / 10000 ** (2 * i / d_model) for pos in range(length)]
            hands[f"hand {i}"] = torch.tensor([[math.sin(a), math.cos(a)] for a in angles])
        yield Shown(drawings.clock_hands(sines_and_cosines(length, d_model)), hands)


def word_and_place():
    """The word's row in the model's table, times √d_model, and sines and cosines: the model's X."""
    example = running_example()
    words = who_and_whom.load().embedding.table.weight[example.token_ids[0]] * math.sqrt(8)
    angles = [[pos / 10000 ** (2 * i / 8) for i in range(4)] for pos in range(6)]
    pe = torch.tensor([[f(a) for a in row for f in (math.sin, math.cos)] for row in angles])
    kinds = {"word": words, "place": pe, "X": example.x[0]}
    drawing = drawings.word_and_place(words, pe, example.tokens[0], [0, 3])
    yield Shown(
        drawing,
        {f"{kind} {pos}": rows[[pos]] for pos in (0, 3) for kind, rows in kinds.items()},
        written=("the same word, another place",),  # both are "the"
    )
    other = drawings.word_and_place(words, pe, example.tokens[0], [0, 1])
    assert "the same word" not in other.wide + other.narrow


def same_average():
    sentences = ["the sailor saw the doctor", "the doctor saw the sailor"]
    model = who_and_whom.load(8, 1)
    sailor, doctor = model.embedding(VOCABULARY.encode_batch([["sailor", "doctor"]]))[0]
    early, late = model.positional_encoding.table[[1, 4]]
    x = model.embed(VOCABULARY.encode_batch(sentences))
    averages = (x[:, 1] + x[:, 4]) / 2
    yield Shown(
        drawings.same_average(
            sentences, [1, 4], torch.stack([sailor, doctor]), torch.stack([early, late])
        ),
        {
            "first": torch.stack([sailor, early, doctor, late]) / 2,
            "first average": averages[[0]],
            "second": torch.stack([doctor, early, sailor, late]) / 2,
            "second average": averages[[1]],
        },
        alt=(
            "½ sailor, ½ seat 1, ½ doctor, ½ seat 4",
            "½ doctor, ½ seat 1, ½ sailor, ½ seat 4",
        ),
        atol=0.01,
    )


def three_projections():
    example = running_example()
    x, layers = example.x[0], example.attention
    layers = {"Q": layers.w_q, "K": layers.w_k, "V": layers.w_v}
    expected = {"X": x}
    for name, layer in layers.items():
        w = expected[f"W_{name}"] = layer.weight.T
        expected[name] = torch.stack([(each[:, None] * w).sum(0) + layer.bias for each in x])
    yield Shown(drawings.three_projections(x, layers, example.tokens[0], 2), expected)


def query_and_keys():
    """The arrows keep what the dot products of four numbers say: lengths, angles, signs."""
    example = running_example()
    q, k = of_heads((example.attention.w_q, example.attention.w_k))
    query, keys = q[0, 2].double(), k[0, [1, 5]].double()
    length, lengths = query.square().sum().sqrt(), keys.square().sum(-1).sqrt()
    angle = F.cosine_similarity(keys, query[None]).acos()
    expected = {
        "query": torch.tensor([[length, 0.0]]),
        "keys": torch.stack((lengths * angle.cos(), lengths * angle.sin()), dim=-1),
    }
    scores = keys @ query
    assert scores.max() / length > length, "one of the arrows is longer than the query"
    yield Shown(
        drawings.query_and_keys(query, keys, "saw", ["cat 1", "cat 5"]),
        expected,
        written=tuple(f"score {score:.2f}<" for score in scores),
    )
    keys = torch.tensor([[2.0, 1], [1, 2], [-2, 1]])
    ways = ("a points along:", "b points aside:", "c points away:")
    drawing = drawings.query_and_keys(torch.tensor([3.0, 0]), keys, "saw", ["a", "b", "c"])
    assert all(f"{way} score" in drawing.wide for way in ways)
    expected = {"query": torch.tensor([[3.0, 0]]), "keys": keys}
    yield Shown(drawing, expected, alt=tuple(f"The key of {way}" for way in ways))


def score_by_seat():
    asking = [("saw", 2), ("chased", 8)]
    scores = scores_in_every_seat(asking, ["cat", "the"])
    yield Shown(
        drawings.score_by_seat(scores, ["cat", "the"], asking, SEATS_OF_ANSWERS),
        {
            f"head {h}, {verb}, {word}": scores[a, h, w]
            for h in range(2)
            for a, verb in enumerate(("saw", "chased"))
            for w, word in enumerate(("cat", "the"))
        },
        alt=(
            f"where who stands, seat 7, “cat” scores {scores[1, 0, 0, 7]:.1f}",
            f"where whom stands, seat 4 and 5, “cat” scores {scores[0, 1, 0, 4]:.1f}",
        ),
    )


SEATS_OF_ANSWERS = [("who", [-1]), ("whom", [2, 3])]  # by head: seats after the verb


def scores_in_every_seat(asking, words):
    """The scores of words in every seat of the sentence: (asker, heads, word, seat)."""
    model = who_and_whom.load(8, 2)
    x = embedded(model, *([word] * len(SENTENCE) for word in words))
    q = model.attention.w_q(
        torch.stack([embedded(model, [verb] * len(SENTENCE))[0, seat] for verb, seat in asking])
    )
    q, k = q.view(-1, 1, 1, 2, 4), model.attention.w_k(x).view(1, *x.shape[:2], 2, 4)
    return (q * k).sum(-1).permute(0, 3, 1, 2)


def cut_into_heads():
    example = running_example()
    q = example.attention.w_q(example.x)[[1]]
    head_0, head_1 = split_heads(q, 2)[0]
    yield Shown(
        drawings.cut_into_heads(q[0], example.tokens[1], 2, lit=2),
        {"Q": q[0], "head 0": head_0, "head 1": head_1},
    )
    q = torch.tensor([[1.5, -2.5]])
    expected = {"Q": q, "head 0": q[:, :1], "head 1": q[:, 1:]}
    drawing = drawings.cut_into_heads(q, ["a"], 2, lit=0)
    yield Shown(drawing, expected, written=(">1.5<", ">−2.5<"))


def view_then_transpose():
    example = running_example()
    q, tokens = example.attention.w_q(example.x)[[1]], example.tokens[1]
    heads = split_heads(q, 2)[0]  # (heads, seq, d_key)
    pieces = {f"{tokens[t]} {t}, head {r}": heads[r, [t]] for t in range(6) for r in range(2)}
    for drawing in drawings.view_then_transpose(q[0], tokens, 2).values():
        yield Shown(drawing, pieces)


def ladder():
    """Whatever the query, the best score is at one of two words: the ends of the ladder."""
    model = who_and_whom.load(8, 8)
    keys = model.attention.w_k(embedded(model, SENTENCE))[0, :, 0]
    queries = torch.linspace(-5, 5, 100)  # without 0
    low, high = keys.argmin().item(), keys.argmax().item()
    assert {*(queries[:, None] * keys).argmax(dim=-1).tolist()} == {low, high}
    yield Shown(
        drawings.ladder(keys, SENTENCE, {"saw": 1, "chased": 7}),
        {"keys": keys},
        alt=(
            f"{SENTENCE[high]} {high}: any query above 0 finds this",
            f"{SENTENCE[low]} {low}: any below 0 finds this",
            "dog 7: “chased” needs this",
        ),
        atol=0.001,
    )


def softmax_steps():
    scores = torch.tensor([2.0, 1.0, 0.0])
    powers = torch.tensor([torch.e**2, torch.e, 1.0])
    expected = {"scores": scores, "powers": powers, "shares": scores.softmax(dim=-1)}
    steps = drawings.softmax_steps(scores, ["a", "b", "c"])
    assert list(steps) == ["scores", "powers", "shares"]
    assert len({drawing.wide for drawing in steps.values()}) == 3
    for drawing in steps.values():
        assert drawing.wide.count('class="faint"') == 2, "each step lights another"
        yield Shown(drawing, expected, atol=0.002)


def listening():
    """The rates are the diagonal of the softmax's derivative, which autograd finds."""
    scores = {"open": torch.tensor([1.0, 0.5, 0.0]), "sure": torch.tensor([12.0, 2.0, 1.0])}
    derivative = torch.autograd.functional.jacobian
    with torch.enable_grad():
        rates = {
            name: derivative(lambda s: s.softmax(dim=-1), s).diagonal()
            for name, s in scores.items()
        }
    weights = {name: s.softmax(dim=-1) for name, s in scores.items()}
    yield Shown(drawings.listening(weights), rates, atol=0.001)


def weights_by_size():
    """The means of the sorted weights, with and without the divisor."""
    torch.manual_seed(0)
    scores = {d_key: torch.randn(40, d_key) @ torch.randn(d_key, 16) for d_key in (4, 64)}
    expected = {}
    for d_key, unscaled in scores.items():
        for how, divisor in (("unscaled", 1), ("scaled", math.sqrt(d_key))):
            powers = (unscaled / divisor).exp()
            weights = powers / powers.sum(dim=-1, keepdim=True)
            rows = [sorted(row, reverse=True)[:10] for row in weights.tolist()]
            expected[f"d_key {d_key}, {how}"] = torch.tensor(rows).mean(dim=0)
    yield Shown(drawings.weights_by_size(scores), expected, atol=0.002)


def mask_before_softmax():
    """Each row is the softmax of what it may see."""
    example = running_example()
    q, k = of_heads((example.attention.w_q, example.attention.w_k))
    scores, weights = q[1] @ k[1].mT / 2, torch.zeros(6, 6)
    for i in range(6):
        weights[i, : i + 1] = scores[i, : i + 1].softmax(dim=0)
    drawing = drawings.mask_before_softmax(scores, attention.causal_mask(6), example.tokens[0])
    for svg in (drawing.wide, drawing.narrow):
        assert svg.count(">−∞<") == 15
    yield Shown(drawing, {"scores": scores, "weights": weights}, atol=0.03)


def mask_after_softmax():
    """Above the line of each fraction the same power; below it the hidden keys only if late."""
    scores, mask = torch.tensor([7.88, -8.37, 7.33, 8.94]), torch.tensor([1, 1, 0, 0]).bool()
    early = scores.masked_fill(~mask, -torch.inf).softmax(dim=0)[0]
    late = scores.softmax(dim=0)[0]
    powers = torch.exp(scores - scores[3])
    tokens = ["birds", "sing", "<pad>", "<pad>"]
    yield Shown(
        drawings.mask_after_softmax(scores, mask, tokens),
        {
            "top first": powers[:1],
            "sum first": powers * mask,
            "top late": powers[:1],
            "sum late": powers,
        },
        written=(f"= {early:.2f}", f"= {late:.2f}"),
        atol=0.001,
    )


def weight_on_pads():
    model, words, rows = who_and_whom.load(8, 2), [*SENTENCE[:10], "cat"], {}
    for length in (11, 14):
        padded = words + ["<pad>"] * (length - 11)
        rows[f"{length} tokens"] = model.attention(embedded(model, padded))[1][0, 0, 8]
    lost = 1 - rows["14 tokens"][:11].sum()
    yield Shown(
        drawings.weight_on_pads(list(rows.values()), words, query=8, head=0),
        rows,
        alt=(f"{lost:.2f} of it on 3 pads",),
        written=(f">on 3 pads: {lost:.2f}<",),
        atol=0.001,
    )
    alone = torch.tensor([0.25, 0.75])
    drawing = drawings.weight_on_pads([alone], ["birds", "sing"], query=1, head=0)
    assert "mistake fill" not in drawing.wide + drawing.narrow
    yield Shown(drawing, {"2 tokens": alone})


def weighted_sum():
    for n_heads in (1, 2):
        model, tokens = who_and_whom.load(8, n_heads), [*SENTENCE[:3], "the", "other", "cat"]
        x = embedded(model, tokens)
        weights = model.attention(x)[1][0, 0, 2]
        values = model.attention.w_v(x)[0, :, : 8 // n_heads]
        total = sum(weight * value for weight, value in zip(weights, values, strict=True))
        yield Shown(
            drawings.weighted_sum(weights, values, tokens, 2),
            {"values": values, "weights": weights, "sum": total},
            atol=0.01,
        )


NAMED = torch.arange(1.0, 7)[:, None].expand(2, 6, 4)  # each number names its token, from 1


def merging():
    """The rows stay where they are until a copy puts them into the order of the merged ones."""
    steps = drawings.merging((2, 6, 4), [*SENTENCE[:4], "other", "cat"])
    before, after = NAMED.flatten(), NAMED.transpose(0, 1).flatten()
    for drawing, memory in zip(steps.values(), (before, before, after), strict=True):
        expected = {"head 0": NAMED[0], "head 1": NAMED[1], "memory": memory}
        yield Shown(drawing, expected, atol=0.001)


def merges():
    """The mistake keeps the shape and mixes tokens."""
    yield Shown(
        drawings.merges((2, 6, 4), [*SENTENCE[:4], "other", "cat"], 2),
        {
            "transpose, then reshape": NAMED.transpose(0, 1).reshape(6, 8),
            "reshape alone": NAMED.reshape(6, 8),
        },
        alt=("token 4, “other”, of head 0 and token 5, “cat”, of head 0: a mistake",),
        atol=0.001,
    )


def heads_add():
    """What the heads and the bias write adds up to the row that the module puts out."""
    example = running_example()
    layer = example.attention
    output, weights = layer(example.x)
    [v] = of_heads((layer.w_v,))
    results = (weights[0, :, 2, None] @ v)[:, 0]
    # What a head writes: the output with the other head at zero, less the bias.
    wrote = layer.w_o(torch.block_diag(*results)) - layer.w_o.bias
    expected = {f"head {r}": results[r] for r in range(2)}
    expected |= {f"head {r} wrote": wrote[r] for r in range(2)}
    expected |= {"bias": layer.w_o.bias, "sum": output[0, 2]}
    yield Shown(drawings.heads_add(results, wrote, layer.w_o.bias, "saw"), expected)


def logit_by_head():
    """The parts add up to the logit that the model reads out."""
    model, example = who_and_whom.load(8, 2), running_example()
    output, weights = model.attention(example.x)
    cat = example.vocabulary.ids["cat"]
    logit = model.read(output[:1], torch.tensor([2]))[0][0, cat]
    [v] = of_heads((model.attention.w_v,))
    results = (weights[0, :, 2, None] @ v)[:, 0]
    parts = torch.block_diag(*results) @ model.attention.w_o.weight.T @ model.to_who.weight[cat]
    assert parts[1] < 0, "head 1 takes something away"
    parts = torch.cat([parts, (logit - parts.sum())[None]])
    drawing = drawings.logit_by_head(parts[None], [("saw", "who", "cat")])
    yield Shown(drawing, {"saw who": parts}, written=(f">{logit:.2f}<",))


def two_stories():
    """The lines are as wide as the model's probabilities, and go to the words that it names."""
    stories = [STORY, [*STORY[3:], "chased", "a", "dog"]]
    verbs = [story.index("chased") for story in stories]
    for variant in (None, "no-positions"):
        model, both = who_and_whom.load(variant=variant), []
        for story, verb in zip(stories, verbs, strict=True):
            ids = VOCABULARY.encode_batch([story])
            reply = model(ids, torch.tensor([verb]))
            both.append([each[0].softmax(-1)[ids[0]] for each in (reply.who, reply.whom)])
        who, whom = (torch.stack(each) for each in zip(*both, strict=True))
        expected = {f"who {nth}": who[nth] for nth in (0, 1)}
        expected |= {f"whom {nth}": whom[nth] for nth in (0, 1)}
        said = [f"{question[:-2]} {p:.2f}" for question, row in expected.items() for p in row]
        drawing = drawings.two_stories(stories, verbs, who, whom)
        yield Shown(drawing, expected, written=tuple(each for each in said if each[-2:] > "05"))


# --------------------------------------------------------------------------------------- Part II


def two_towers():
    yield Shown(drawings.two_towers(), {})
    for lit in range(8, 13):
        yield Shown(drawings.two_towers(lit), {}, alt=(f"Lit: what chapter {lit} builds.",))


def loss_of_share():
    """The marks stand at the cross-entropy of their shares, and every halving adds as much."""

    def cross_entropy(share):
        logits = torch.tensor([[share, 1 - share]]).double().log()  # the first of two is right
        return F.cross_entropy(logits, torch.tensor([0]))

    model = who_and_whom.load_checkpoint(seed=4, step=0).model.double()
    answer = model(VOCABULARY.encode_batch([STORY]), torch.tensor([2])).who
    untrained = answer.softmax(dim=-1)[0, VOCABULARY.ids["dog"]].item()
    for share, halvings in ((0.3, 1), (0.25, 2), (0.0074, 7), (untrained, None)):
        drawing = drawings.loss_of_share(torch.tensor(share, dtype=torch.float64), "dog")
        halvings = halvings or len(drawing.values["halvings"]) - 1
        yield Shown(
            drawing,
            {
                "halvings": torch.stack([cross_entropy(0.5**n) for n in range(halvings + 1)]),
                "model": cross_entropy(share)[None],
            },
            written=(f"loss {cross_entropy(share):.2f}",),
        )


def gradients_way_back():
    """The arrows are as wide as the largest gradient, whatever its sign.

    That of each station by autograd, as the loss of both answers is computed on from there.
    """
    with torch.enable_grad():
        model = who_and_whom.load_checkpoint(seed=4, step=0).model.double()
        layer, x = model.attention, embedded(model, STORY)
        w_q = layer.w_q.weight
        q, k, v = (split_heads(each(x), 2) for each in (layer.w_q, layer.w_k, layer.w_v))
        scores = q @ k.mT / 2
        weights = scores.softmax(dim=-1)
        words = layer.w_o(attention.merge_heads(weights @ v))[0, 2]
        answers = torch.stack([model.to_who(words), model.to_whom(words)])
        right = torch.tensor([VOCABULARY.ids["dog"], VOCABULARY.ids["ball"]])
        loss = F.cross_entropy(answers, right, reduction="sum")
        gradients = torch.autograd.grad(loss, (answers, words, weights, scores, w_q))
    stations = dict(zip(("answers", "row", "weights", "scores", "W_Q"), gradients, strict=True))
    largest = torch.stack([gradient.abs().max() for gradient in gradients])
    passed = largest / torch.cat([torch.ones(1), largest[:-1]])
    assert passed.argmin() == 3 and passed[3] < 0.2, "the softmax lets least through"
    yield Shown(
        drawings.gradients_way_back(stations),
        {"largest": largest},
        written=tuple(f"{size:.3f}" for size in largest.tolist()),
    )
    signed = {name: torch.tensor([0.1, -0.5]) for name in stations}
    yield Shown(drawings.gradients_way_back(signed), {"largest": torch.full((5,), 0.5)})


DATE = next(date for date in dates.held_out_dates() if date.iso == "1916-05-26")


def readers_and_writer():
    """The states of both readers, the last of each, and the weights of one step: the model's."""
    signs = [*DATE.iso, "end"]

    def read_and_written(name):
        model = dates.load(name).double()
        encoded = model.encoder(dates.encode([DATE])[0])
        ids, weights = model.decoder.greedy(
            encoded, start_id=dates.START, end_id=dates.END, max_length=dates.ANSWER
        )
        readers = {"from the left": encoded[0].T[:6], "from the right": encoded[0].T[6:]}
        return encoded[0], [dates.SIGN_NAMES[sign] for sign in ids[0]], weights[0], readers

    encoded, wrote, _, readers = read_and_written("narrow-last-state")
    drawing = drawings.readers_and_writer(DATE.text, encoded, wrote, signs)
    for svg in (drawing.wide, drawing.narrow):
        assert svg.count(">×<") == 2 and svg.count("mistake of bold") == 2
    neck = {"last states": torch.cat([encoded[0, 6:], encoded[28, :6]])}
    yield Shown(drawing, readers | neck, alt=("wrong at 2 of 11",))

    encoded, wrote, weights, readers = read_and_written("narrow-additive")
    for step in (0, 6):
        at = weights[step]
        drawing = drawings.readers_and_writer(DATE.text, encoded, wrote, signs, at, step)
        for svg in (drawing.wide, drawing.narrow):
            # Before the first step no state has been written that could stand beside the question.
            assert (">asks<" in svg) == (step > 0)
        most = f"{at.max():.2f} from letter {at.argmax()}, "
        yield Shown(drawing, readers | {"weights": at}, alt=(most,))


def who_asks():
    yield Shown(drawings.who_asks(), {}, written=(">asks<", ">GRU<"))


def two_clocks():
    """The hands stand where complex numbers put them; together they move, apart they do not."""
    q, k, theta = 2 + 1j, 1 + 3j, 0.1
    places = [(5, 3), (57, 55), (3, 5), (4, 4)]
    steps = drawings.two_clocks(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 3.0]), theta, places)
    for (m, n), drawing in zip(places, steps.values(), strict=True):
        hands = {"query": q * cmath.exp(1j * m * theta), "key": k * cmath.exp(1j * n * theta)}
        product = hands["query"] * hands["key"].conjugate()
        expected = {name: torch.tensor([[z.real, z.imag]]) for name, z in hands.items()}
        expected |= {f"{name} again": value for name, value in expected.items()}
        yield Shown(
            drawing,
            expected,
            alt=(f"product is {product.real:.4f}",),
            written=(
                f"product: {product.real:.4f}",
                f"angle between: {abs(cmath.phase(product)):.3f}",
            ),
        )


def distance_waves():
    """The waves of the trained rotary head: what each pair adds as the module turns the keys."""
    model = last_speaker.load("rotary").double()
    ids = (last_speaker.WORDS.index(word) for word in ("?", "ann"))
    x_q, x_k = (model.embedding(torch.tensor([[each]])) for each in ids)
    q = split_heads(model.attention.w_q(x_q), 4)[0, 1, 0]
    k = split_heads(model.attention.w_k(x_k), 4)[0, 1, 0]

    back = torch.arange(-20, 64, 2).double()
    rotary = attention.Rotary(d_key=8).double()
    turned_q, turned_k = rotary(q.expand(1, 1, 84, 8), k.expand(1, 1, 84, 8))
    products = (turned_q[0, 0, 63] * turned_k[0, 0, (63 - back).long()]).unflatten(-1, (4, 2))
    expected = {f"pair {i}": each for i, each in enumerate(products.sum(-1).T / math.sqrt(8))}

    a, b = (torch.view_as_complex(x.view(4, 2)) for x in (q, k))
    theta = torch.tensor([1.0, 0.1, 0.01, 0.001], dtype=torch.float64)
    top, period = -(a * b.conj()).angle() / theta, 2 * math.pi / theta
    tops = [f"{place:.1f}".replace("-", "−") for place in (top[1], top[1] + period[1])]
    yield Shown(
        drawings.distance_waves(back, (a * b.conj()).abs() / math.sqrt(8), top, period, trained=16),
        expected | {"score": sum(expected.values())},
        alt=tuple(tops),
        written=tuple(f"top at {each}" for each in tops),
    )


def residual_stream():
    """As wide as the row is long, and so is what each sublayer writes, by itself."""
    model = relative_clauses.load(2)
    tokens = ["the", "dog", "saw", "the", "bird", "that", "the", "cat", "chased"]
    x = model.positional_encoding(
        model.embedding(relative_clauses.VOCABULARY.encode_batch([tokens]))
    )
    rows, changes = [x[0, 1]], []
    for layer in model.encoder.layers:
        for write in (
            lambda x, layer=layer: layer.self_attention(layer.self_attention_norm(x))[0],
            lambda x, layer=layer: layer.feed_forward(layer.feed_forward_norm(x)),
        ):
            changes.append(write(x)[0, 1])
            x = x + write(x)
            rows.append(x[0, 1])
    names = ["attention 1", "feed-forward 1", "attention 2", "feed-forward 2"]
    yield Shown(
        drawings.residual_stream(torch.stack(rows), "dog", names),
        {"rows": torch.stack(rows).norm(dim=-1), "changes": torch.stack(changes).norm(dim=-1)},
    )


def rows_of_both_layers(text, without=()):
    """A model's layers, and the rows after its first, without what these heads of it write."""
    model = induction.load(2).double()
    first, second = model.layers
    for head in without:
        first.w_o.weight[:, 16 * head : 16 * head + 16] = 0
    x = model.positions(model.embedding(induction.encode(text)))
    added, weights = first(x, causal=True)
    return second, (x + added)[0], weights[0]


def score_of(text, without=()):
    """What head 1.0 gives the key at place 1, without what these heads add to that key."""
    second, whole, _ = rows_of_both_layers(text)
    _, keys, _ = rows_of_both_layers(text, without)
    return second.w_q.weight[:16] @ whole[-1] @ (second.w_k.weight[:16] @ keys[1]) / 4


def score_in_parts():
    """Each part is the difference that a head makes."""
    for text, said in (("kxcdqmk", "15.19"), ("dxckqmk", "4.29")):
        whole = score_of(text)
        assert f"{whole:.2f}" == said, "as chapter 12 prints it"
        parts = [score_of(text, [0, 1]), *(whole - score_of(text, [head]) for head in (1, 0))]
        parts = torch.stack(parts)
        names = ["own token and place", "written by head 0.1", "written by head 0.0"]
        drawing = drawings.score_in_parts({text: parts}, names, "x")
        yield Shown(drawing, {text: parts}, written=(f">{whole:.1f}<",))


def write_match_copy():
    """What is written, matched and copied is what two heads of the trained model do."""
    for text, found in (("kxcdqmk", 1), ("dxckqmk", 4)):
        second, rows, [_, weights] = rows_of_both_layers(text)
        scores = rows @ second.w_k.weight[:16].T @ (second.w_q.weight[:16] @ rows[-1]) / 4
        logits, _ = induction.load(2)(induction.encode(text))
        answer = induction.decode(logits[0, -1].argmax()[None])
        assert answer == text[found]
        copies = scores.softmax(-1)
        yield Shown(
            drawings.write_match_copy(text, weights, scores, answer),
            {
                "writes": weights[found],
                "writes elsewhere": torch.cat([weights[:found], weights[found + 1 :]]),
                "copies": copies,
            },
            alt=(f"copies {text[-3]} from it",) if found == 4 else (),
            written=(
                ">writes<",
                f">{weights[found].max():.2f}<",
                f">matches, score {scores[found]:.1f}<",
                f">copies {copies[found]:.2f}<",
            ),
        )


def teacher_forcing():
    """Each row sees the signs up to its place."""
    ids = dates.SIGNS.encode_batch([["<start>", *"1973-03-04", "<end>"]])[0]
    yield Shown(
        drawings.teacher_forcing(
            ids[:-1], ids[1:], attention.causal_mask(11), dates.SIGN_NAMES.__getitem__
        ),
        {"sees": torch.tensor([[float(s <= t) for s in range(11)] for t in range(11)])},
        alt=("the row that sees start 1 9 is compared with 7",),
    )


def writing_steps():
    """The letters flow into each step by the cross-attention of the model, one step at a time."""
    text = "sunday, march the 4th 1973"
    model = dates.load("transformer").double().transformer
    letters = dates.LETTERS.encode_batch([list(text)])
    memory, _ = model.encode(letters)
    ids, weights = [dates.START], []
    for _ in range(11):
        logits, _, cross = model.decode(torch.tensor([ids]), memory, letters)
        weights.append(cross[0][0, :, -1].mean(0))
        ids.append(int(logits[0, -1].argmax()))
    signs = [dates.SIGN_NAMES[i] for i in ids[1:]]
    assert signs == [*"1973-03-04", "end"]
    reads, *steps = drawings.writing_steps(text, signs, torch.stack(weights)).items()
    assert reads[0] == "0: reads"
    yield Shown(reads[1], {})
    for nth, (name, drawing) in enumerate(steps):
        assert name == f"{nth + 1}: writes {signs[nth]}"
        for svg in (drawing.wide, drawing.narrow):
            line = [each.text for each in elements(svg, "text") if each.get("y") == "274.0"]
            assert line[-nth - 2 :] == ["<start>", *signs[: nth + 1]]
        much = [f"{text[j]} {at:.2f}" for j, at in enumerate(weights[nth]) if at >= 0.1]
        named = (", ".join(much),) if nth == 6 else ()
        assert nth != 6 or len(much) == 4, "the step that writes the month looks at its letters"
        yield Shown(
            drawing,
            {"weights": weights[nth]},
            alt=tuple(f"looks at the rows of the letters, most at {each}" for each in named),
            written=tuple(f">looks most at {each}<" for each in named),
        )


# -------------------------------------------------------------------------------------- Part III


def decode_step():
    """The strips are milliseconds: what is read at a bandwidth, what is computed at a peak."""
    bytes_read = torch.tensor([[16_000, 1_000], [16_000, 34_000], [16_000, 0]])
    flops = torch.tensor([[16_000, 4_000], [512_000, 128_000], [64_000_000, 8_000_000]])
    drawing = drawings.decode_step(
        bytes_read, flops, ["one text", "32 texts", "prefill"], bandwidth=4e6, peak=8e9
    )
    for svg in (drawing.wide, drawing.narrow):
        assert svg.count("waits for the memory") == 4  # two in the words for a screen reader
        assert svg.count("waits for the arithmetic") == 2
    yield Shown(
        drawing,
        {
            "read 0": torch.tensor([4.0, 0.25]),
            "compute 0": torch.tensor([0.002, 0.0005]),
            "read 1": torch.tensor([4.0, 8.5]),
            "compute 1": torch.tensor([0.064, 0.016]),
            "read 2": torch.tensor([4.0, 0.0]),
            "compute 2": torch.tensor([8.0, 1.0]),
        },
        alt=(
            "One text: it reads 16 kB of weights and 1 kB of cache: 4.25 ms and computes 20 kFLOP: "
            "0.00 ms, so it waits for the memory.",
            "Prefill: it reads 16 kB of weights: 4.00 ms and computes 72 MFLOP",
        ),
    )


def roofline():
    """The dots lie on the roof: a slope up to the ridge, and level from there on."""
    intensity = torch.tensor([1.0, 8.0, 1024.0])
    rates = [min(H100.peak, each * H100.bandwidth) for each in intensity.tolist()]
    yield Shown(
        drawings.roofline(
            intensity,
            ["multi-head", "grouped", "prefill"],
            bandwidth=H100.bandwidth,
            peak=H100.peak,
        ),
        {"attainable": torch.tensor(rates).double().div(0.5 * H100.bandwidth).log10()},
        alt=("ridge at 295 FLOPs a byte",),
        written=("ridge: 295",),
    )


def four_caches():
    """One token's part of each cache, by the layers themselves."""
    torch.manual_seed(0)
    x, kept, expected = torch.randn(1, 1, 48), {}, {}
    for name, n_kv_heads in (("multi-head", 4), ("grouped-query", 2), ("multi-query", 1)):
        layer = attention.GroupedQueryAttention(48, 4, n_kv_heads)
        cache = layer.new_cache(1, 1)
        layer(x, cache=cache)
        kept[name] = torch.stack((cache.keys[0, :, 0], cache.values[0, :, 0]))
        for kind, heads in zip(("key", "value"), kept[name], strict=True):
            for i, numbers in enumerate(heads):
                expected[f"{kind} of KV head {i}, {name}"] = numbers[:, None]
    layer = attention.LatentAttention(48, 4, 20, d_rotary=4)
    cache = layer.new_cache(1, 1)
    layer(x, cache=cache)
    latent, rotary_key = cache.latents[0, 0], cache.rotary_keys[0, 0]
    yield Shown(
        drawings.four_caches(kept, latent, rotary_key, n_heads=4),
        expected | {"latent row": latent[None], "rotary key": rotary_key[None]},
        alt=(
            *(f"{count} numbers kept" for count in (96, 48, 24)),
            "2 KV heads, each read by 2 of them",
        ),
        written=tuple(f"kept: {count} numbers" for count in ("96", "48", "24", "20 + 4")),
    )


def two_memories():
    """What crosses between the memories is what the two loops read and write, in megabytes."""
    for queries, keys, d_value, tile, dtype in (
        (16384, 16384, 64, 64, torch.float16),
        (16384, 16384, 64, 256, torch.float16),
        (1000, 3000, 32, 96, torch.float32),
    ):
        q, k, v = (
            torch.empty(n, d, dtype=dtype) for n, d in ((queries, 64), (keys, 64), (keys, d_value))
        )
        size, tiled = q.element_size(), torch.zeros(5, dtype=torch.float64)
        for rows in q.split(tile):
            read = [rows.numel() * size, k.numel() * size, v.numel() * size]
            tiled += torch.tensor([*read, len(rows) * d_value * size, len(rows) * 4])
        weights = queries * keys
        standard = [q.numel(), k.numel(), *[weights] * 4, v.numel(), queries * d_value]
        standard = torch.tensor(standard).double() * size / 1e6
        chapters = tile == 64
        yield Shown(
            drawings.two_memories(q, k, v, tile),
            {"standard": standard, "in tiles": tiled / 1e6},
            alt=("In all 1,078 MB cross", "moves 2,156 MB") if chapters else (),
            written=("256 times", "1,074 MB", "2 MB<") if chapters else (),
            atol=1e-4 * float(standard.sum()),
        )


def cone():
    local, every = attention.sliding_window_mask(12, 2, causal=True), attention.causal_mask(12)
    yield Shown(
        drawings.cone({"local": [local] * 3, "local, local, all": [local, local, every]}),
        None,
        alt=(
            "local: 3 layers; the last token can have heard of the last 3, 5, 7 of 12",
            "all: 3 layers; the last token can have heard of the last 12, 12, 12 of 12",
        ),
    )


ANGLES = torch.deg2rad(torch.tensor([20.0, 160, 35, 250, 10, 170, 325, 190]))
DIRECTIONS = torch.stack([ANGLES.cos(), ANGLES.sin()], dim=-1).double()
TURN = torch.deg2rad(torch.tensor(-30.0))
TURNED = torch.stack([TURN.cos(), -TURN.sin(), TURN.sin(), TURN.cos()]).view(2, 2).double()
BUCKETS = attention.lsh_buckets(DIRECTIONS[None, None], TURNED[None])[0, 0, 0]


def sort_cut_look():
    """Every step shows the directions, of longer vectors too."""
    for length in (1, 3):
        steps = drawings.sort_cut_look(length * DIRECTIONS, TURNED, BUCKETS, chunk_length=3, asks=4)
        for drawing in steps.values():
            yield Shown(drawing, {"x": DIRECTIONS})


def chunk_by_chunk():
    """Triangles and states: those of causal attention without softmax over the whole text."""
    torch.manual_seed(0)
    query, key, value = torch.rand(6, 4), torch.rand(6, 4), torch.randn(6, 3)
    weights = (query @ key.T).tril()
    for chunk in (2, 3):
        expected = {}
        for nth, first in enumerate(range(0, 6, chunk), start=1):
            own = slice(first, first + chunk)
            expected[f"chunk {nth}"] = weights[own, own]
            expected[f"state {nth}"] = key[: own.stop].T @ value[: own.stop]
        said = "6 tokens in chunks of 3: a, b, c; d, e, f.", "one state of 12 numbers"
        drawing = drawings.chunk_by_chunk(query, key, value, list("abcdef"), chunk)
        yield Shown(drawing, expected, alt=said if chunk == 3 else ())


def erase_then_write():
    """The new states are those that the two rules of the book leave."""
    key, value = torch.tensor([0.6, 0.8, 0.0]), torch.tensor([1.0, 5.0, -2.0])
    state = torch.tensor([[4.0, 0, 2], [0, -3, 1], [0, 1, 0]])

    def left_by(rule, *gate):
        q, k, v = (x[None, None, None] for x in (key, key, value))
        return rule(q, k, v, *gate, state=state[None, None])[1][0, 0]

    for beta in (1.0, 0.25):
        yield Shown(
            drawings.erase_then_write(state, key, value, beta),
            {
                "sum state": state,
                "sum write": torch.outer(key, value),
                "sum new": left_by(attention.decayed_linear_attention, torch.ones(1, 1, 1)),
                "delta state": state,
                "delta erase": beta * torch.outer(key, key @ state),
                "delta write": beta * torch.outer(key, value),
                "delta new": left_by(attention.gated_delta_rule, torch.full((1, 1, 1), beta)),
            },
        )
    key, value = torch.tensor([1.0, 0]), torch.tensor([0.0, 3])
    told = drawings.erase_then_write(torch.eye(2), key, value).alt
    assert "answers the key with 1.0, 3.0" in told
    assert "takes away what the state answers to the key, 1.0, 0.0" in told
    assert "answers 0.0, 3.0; the value was 0.0, 3.0" in told


def which_one():
    yield Shown(drawings.which_one(), {})


ROWS = {name: make for name, make in globals().items() if name in drawings.__all__}
