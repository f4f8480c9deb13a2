"""The table of drawings: how each is called, and the tensors that must stand in what it draws.

A row is a function with the drawing's name. It yields what the drawing makes of some arguments,
each with its tensors, computed here once more in plain torch.
"""

import cmath
import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

import attention
from attention import drawings
from attention.cost.decode import H100
from attention.embedding import sines_and_cosines
from attention.trained import dates
from tests.unit.drawings.reading import elements


class Shown(NamedTuple):
    """What a drawing must show.

    Attributes:
        drawing: as it is made.
        tensors: by name; None where a test of the drawing's own reads what it draws.
        alt: what its words say.
        written: what stands in both of its SVGs.
        counts: what stands in each of them, and how often.
        atol: how far what is read back may be from the tensors: half of the finest shade or line.
    """

    drawing: drawings.Drawing
    tensors: dict[str, Tensor] | None
    alt: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    atol: float = 0.02


SENTENCE = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "chased", "the", "other", "cat"]


def randn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).double()


# --------------------------------------------------------------------------------------------- maps
TEN_MISTAKES = ["scores"] * 2 + ["weights"] * 4 + ["heads", "merged"] + ["Q, K, V"] * 2


def module_map():
    yield Shown(drawings.module_map(), {})
    for lit in range(1, 8):
        yield Shown(drawings.module_map(lit), {}, alt=(f"Lit: what chapter {lit} builds.",))
    by_step = (
        "Mistakes: 9, 10 at project; 7 at split; 1, 2 at q · k ÷ √d_key; "
        "3, 4, 5, 6 at mask, softmax; 8 at merge."
    )
    yield Shown(drawings.module_map(mistakes=TEN_MISTAKES), {}, alt=(by_step,))


def two_towers():
    yield Shown(drawings.two_towers(), {})
    for lit in range(8, 13):
        yield Shown(drawings.two_towers(lit), {}, alt=(f"Lit: what chapter {lit} builds.",))


def which_one():
    yield Shown(drawings.which_one(), {})


# ------------------------------------------------------------------------------------------- tables
def word_and_place():
    """The word's row and the place's add up to a row of X."""
    words, pe = randn(6, 8), randn(6, 8)
    words[3] = words[0]  # both are "the"
    kinds = {"word": words, "place": pe, "X": words + pe}
    yield Shown(
        drawings.word_and_place(words, pe, SENTENCE[:6], [0, 3]),
        {f"{kind} {pos}": rows[[pos]] for pos in (0, 3) for kind, rows in kinds.items()},
        written=("the same word, another position",),
    )
    other = drawings.word_and_place(words, pe, SENTENCE[:6], [0, 1])
    assert "the same word" not in other.wide + other.narrow


def same_average():
    """Both averages, each of its own four rows, agree."""
    sentences = ["the sailor saw the doctor", "the doctor saw the sailor"]
    words, positions = randn(2, 8), randn(2, 8)
    [sailor, doctor], [early, late] = words, positions
    average = (words.sum(0) + positions.sum(0))[None] / 2
    yield Shown(
        drawings.same_average(sentences, [1, 4], words, positions),
        {
            "first": torch.stack([sailor, early, doctor, late]) / 2,
            "first average": average,
            "second": torch.stack([doctor, early, sailor, late]) / 2,
            "second average": average,
        },
        alt=(
            "½ sailor, ½ position 1, ½ doctor, ½ position 4",
            "½ doctor, ½ position 1, ½ sailor, ½ position 4",
        ),
        atol=0.01,
    )


def three_projections():
    x, expected = randn(6, 8).float(), {}
    layers = {name: torch.nn.Linear(8, 8) for name in "QKV"}
    for name, layer in layers.items():
        w = expected[f"W_{name}"] = layer.weight.T
        expected[name] = torch.stack([(each[:, None] * w).sum(0) + layer.bias for each in x])
    yield Shown(drawings.three_projections(x, layers, SENTENCE[:6], 2), expected | {"X": x})


def mask_before_softmax():
    """Each row is the softmax of what it may see."""
    scores, weights = 3 * randn(6, 6), torch.zeros(6, 6, dtype=torch.float64)
    for i in range(6):
        weights[i, : i + 1] = scores[i, : i + 1].softmax(dim=0)
    drawing = drawings.mask_before_softmax(scores, attention.causal_mask(6), SENTENCE[:6])
    expected = {"scores": scores, "weights": weights}
    yield Shown(drawing, expected, counts=((">−∞<", 15),), atol=0.03)


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


def two_readers():
    """Rows and states: what each reader would keep of the whole text alone."""
    torch.manual_seed(0)
    key, value = torch.randn(5, 4), torch.randn(5, 3)
    rows = torch.cat((key, value), 1)
    expected = {"rows": rows[:3], "row of A": rows[3:4], "row of B": rows[4:]}
    for name, read in (
        ("state", [0, 1, 2]),
        ("state of A", [0, 1, 2, 3]),
        ("state of B", [0, 1, 2, 4]),
    ):
        expected[name] = torch.einsum("tk,tv->kv", key[read], value[read])
    said = "begin with “a b c”", "5 rows in all", "12 numbers"
    yield Shown(drawings.two_readers(key, value, list("abcde"), 3), expected, alt=said)


# -------------------------------------------------------------------------------------------- heads
def cut_into_heads():
    for q, lit in ((randn(6, 8), 2), (torch.tensor([[1.5, -2.5]]), 0)):
        head_0, head_1 = q.chunk(2, dim=-1)
        drawing = drawings.cut_into_heads(q, SENTENCE[: len(q)], 2, lit=lit)
        expected = {"Q": q, "head 0": head_0, "head 1": head_1}
        yield Shown(drawing, expected, written=() if lit else (">1.5<", ">−2.5<"))


def view_then_transpose():
    q = randn(6, 8)
    pieces = {
        f"{SENTENCE[t]} {t}, head {r}": q[[t], 4 * r : 4 * r + 4]
        for t, r in itertools.product(range(6), range(2))
    }
    for drawing in drawings.view_then_transpose(q, SENTENCE[:6], 2).values():
        yield Shown(drawing, pieces)


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
    results, wrote, bias = randn(2, 4), randn(2, 8), randn(8)
    expected = {"bias": bias, "sum": wrote[0] + wrote[1] + bias}
    expected |= {f"head {r}": results[r] for r in range(2)}
    expected |= {f"head {r} wrote": wrote[r] for r in range(2)}
    yield Shown(drawings.heads_add(results, wrote, bias, "saw"), expected)


def four_caches():
    """What one token leaves in each cache."""
    heads = {"multi-head": 4, "grouped-query": 2, "multi-query": 1}
    kept = {name: randn(2, n_kv_heads, 12) for name, n_kv_heads in heads.items()}
    latent, rotary_key = randn(20), randn(4)
    expected = {
        f"{kind} of KV head {i}, {name}": kept[name][which, i, :, None]
        for name, n_kv_heads in heads.items()
        for which, kind in enumerate(("key", "value"))
        for i in range(n_kv_heads)
    }
    yield Shown(
        drawings.four_caches(kept, latent, rotary_key, n_heads=4),
        expected | {"latent row": latent[None], "rotary key": rotary_key[None]},
        alt=(
            *(f"{count} numbers kept" for count in (96, 48, 24)),
            "2 KV heads, each read by 2 of them",
        ),
        written=tuple(f"kept: {count} numbers" for count in ("96", "48", "24", "20 + 4")),
    )


# ------------------------------------------------------------------------------------------- strips
def weight_on_pads():
    rows = {f"{length} tokens": randn(length).softmax(0) for length in (11, 14)}
    lost = 1 - rows["14 tokens"][:11].sum()
    yield Shown(
        drawings.weight_on_pads(list(rows.values()), SENTENCE[:11], query=8, head=0),
        rows,
        alt=(f"{lost:.2f} of it on 3 pads",),
        written=(f">on 3 pads: {lost:.2f}<",),
        atol=0.001,
    )
    alone = torch.tensor([0.25, 0.75])
    drawing = drawings.weight_on_pads([alone], ["birds", "sing"], query=1, head=0)
    yield Shown(drawing, {"2 tokens": alone}, counts=(("mistake fill", 0),))


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


def logit_by_head():
    """One of the parts takes something away."""
    parts = torch.tensor([6.5, -1.25, 0.5])
    drawing = drawings.logit_by_head(parts[None], [("saw", "who", "cat")])
    yield Shown(drawing, {"saw who": parts}, written=(">5.75<",))


def score_in_parts():
    parts = torch.tensor([0.5, 13.75, -0.5])
    names = ["own token and position", "written by head 1.1", "written by head 1.0"]
    drawing = drawings.score_in_parts({"kxcdqmk": parts}, names, "x")
    yield Shown(drawing, {"kxcdqmk": parts}, written=(">13.8<",))


def decode_step():
    """The strips are milliseconds: what is read at a bandwidth, what is computed at a peak."""
    bytes_read = torch.tensor([[16_000, 1_000], [16_000, 34_000], [16_000, 0]])
    flops = torch.tensor([[16_000, 4_000], [512_000, 128_000], [64_000_000, 8_000_000]])
    drawing = drawings.decode_step(
        bytes_read, flops, ["one text", "32 texts", "prefill"], bandwidth=4e6, peak=8e9
    )
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
        # Of each, half in the words for a screen reader.
        counts=(("waits for the memory", 4), ("waits for the arithmetic", 2)),
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


# -------------------------------------------------------------------------------------------- flows
def two_stories():
    """The lines are as wide as the probabilities, and what is more than 2 % is written."""
    story = ["a", "dog", "chased", "the", "red", "ball"]
    stories = [story, [*story[3:], "chased", "a", "dog"]]
    who, whom = randn(2, 6).mul(3).softmax(-1), randn(2, 6).mul(-3).softmax(-1)
    expected = {f"who {nth}": who[nth] for nth in (0, 1)}
    expected |= {f"whom {nth}": whom[nth] for nth in (0, 1)}
    said = [f"{name[:-2]} {p:.2f}" for name, row in expected.items() for p in row if p > 0.02]
    drawing = drawings.two_stories(stories, [2, 3], who, whom)
    yield Shown(drawing, expected, written=tuple(said))


def weighted_sum():
    weights = randn(6).softmax(0)
    for width in (4, 8):
        values = randn(6, width)
        total = sum(weight * value for weight, value in zip(weights, values, strict=True))
        yield Shown(
            drawings.weighted_sum(weights, values, SENTENCE[:6], 2),
            {"values": values, "weights": weights, "sum": total},
            atol=0.01,
        )


def readers_and_writer():
    """The states of both readers, the last of each, and the weights of one step."""
    text, right = "friday, the 26th of may, 1916", [*"1916-05-26", "end"]
    wrote, encoded, weights = [*"1916-03-27", "end"], randn(29, 12).tanh(), randn(29).softmax(0)
    readers = {"from the left": encoded[:, :6].T, "from the right": encoded[:, 6:].T}
    drawing = drawings.readers_and_writer(text, encoded, wrote, right)
    neck = {"last states": torch.cat([encoded[0, 6:], encoded[28, :6]])}
    twice = ((">×<", 2), ("mistake of bold", 2))
    yield Shown(drawing, readers | neck, alt=("wrong at 2 of 11",), counts=twice)
    for step, questions in ((0, 0), (6, 1)):  # before the first step no state could ask
        drawing = drawings.readers_and_writer(text, encoded, wrote, right, weights, step)
        most = f"{weights.max():.2f} from letter {weights.argmax()}, "
        asked = ((">asks<", questions),)
        yield Shown(drawing, readers | {"weights": weights}, alt=(most,), counts=asked)


def writing_steps():
    """The letters flow into each step by its weights, and its sign is written."""
    text, signs = "sunday, march the 4th 1973", [*"1973-03-04", "end"]
    weights = randn(11, 26).softmax(-1)
    weights[6] = torch.tensor([0.01] * 8 + [0.3, 0.2, 0.15, 0.17] + [0.0] * 14)
    reads, *steps = drawings.writing_steps(text, signs, weights).items()
    assert reads[0] == "0: reads"
    yield Shown(reads[1], {})
    for nth, (name, drawing) in enumerate(steps):
        assert name == f"{nth + 1}: writes {signs[nth]}"
        for svg in (drawing.wide, drawing.narrow):
            line = [each.text for each in elements(svg, "text") if each.get("y") == "274.0"]
            assert line[-nth - 2 :] == ["<start>", *signs[: nth + 1]]
        most = "m 0.30, a 0.20, r 0.15, c 0.17"
        yield Shown(
            drawing,
            {"weights": weights[nth]},
            alt=(f"looks at the rows of the letters, most at {most}",) if nth == 6 else (),
            written=(f">looks most at {most}<",) if nth == 6 else (),
        )


def write_match_copy():
    """What one head writes, and what the other matches and copies."""
    text = "kxcdqmk"
    hidden = torch.ones(7, 7).triu(1).bool()
    weights = randn(7, 7).masked_fill(hidden, -torch.inf).softmax(-1)
    for found in (1, 4):
        scores = 3 * randn(7)
        scores[found] = 9
        copies = scores.softmax(-1)
        yield Shown(
            drawings.write_match_copy(text, weights, scores, text[found]),
            {
                "writes": weights[found],
                "writes elsewhere": torch.cat([weights[:found], weights[found + 1 :]]),
                "copies": copies,
            },
            alt=(f"copies {text[found]} from it",),
            written=(
                ">writes<",
                f">{weights[found].max():.2f}<",
                ">matches, score 9.0<",
                f">copies {copies[found]:.2f}<",
            ),
        )


# ------------------------------------------------------------------------------------------- arrows
def query_and_keys():
    """The arrows keep what the dot products of four numbers say: lengths, angles, signs."""
    query, keys = torch.tensor([1.0, -2, 0.5, 1]), torch.tensor([[3.0, -4, 2, 1], [-1, 0, 2, 1]])
    length, lengths = query.square().sum().sqrt(), keys.square().sum(-1).sqrt()
    angle = F.cosine_similarity(keys, query[None]).acos()
    expected = {
        "query": torch.tensor([[length, 0.0]]),
        "keys": torch.stack((lengths * angle.cos(), lengths * angle.sin()), dim=-1),
    }
    drawing = drawings.query_and_keys(query, keys, "saw", ["cat 1", "cat 5"])
    yield Shown(drawing, expected, written=("score 13.00<", "score 1.00<"))
    keys = torch.tensor([[2.0, 1], [1, 2], [-2, 1]])
    ways = ("a points along:", "b points aside:", "c points away:")
    drawing = drawings.query_and_keys(torch.tensor([3.0, 0]), keys, "saw", ["a", "b", "c"])
    assert all(f"{way} score" in drawing.wide for way in ways)
    expected = {"query": torch.tensor([[3.0, 0]]), "keys": keys}
    yield Shown(drawing, expected, alt=tuple(f"The key of {way}" for way in ways))


def clock_hands():
    """The angle is pos / 10000^(2i/d_model), clockwise from twelve."""
    for length, d_model in ((6, 8), (3, 4)):
        hands = {}
        for i in range(d_model // 2):
            angles = [pos / 10000 ** (2 * i / d_model) for pos in range(length)]
            hands[f"hand {i}"] = torch.tensor([[math.sin(a), math.cos(a)] for a in angles])
        yield Shown(drawings.clock_hands(sines_and_cosines(length, d_model)), hands)


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


# ------------------------------------------------------------------------------------------- curves
def softmax_steps():
    scores = torch.tensor([2.0, 1.0, 0.0])
    powers = torch.tensor([torch.e**2, torch.e, 1.0])
    expected = {"scores": scores, "powers": powers, "shares": scores.softmax(dim=-1)}
    steps = drawings.softmax_steps(scores, ["a", "b", "c"])
    assert list(steps) == ["scores", "powers", "shares"]
    assert len({drawing.wide for drawing in steps.values()}) == 3
    for drawing in steps.values():  # each step lights another
        yield Shown(drawing, expected, counts=(('class="faint"', 2),), atol=0.002)


def ladder():
    """Whatever the query, the best score is at one of two words: the ends of the ladder."""
    keys = randn(12)
    high, low = keys.argmax(), keys.argmin()
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


def score_by_position():
    scores, asking = 4 * randn(2, 2, 2, 12).abs(), [("saw", 2), ("chased", 8)]
    answers = [("who", [-1]), ("whom", [2, 3])]  # by head: after the verb
    yield Shown(
        drawings.score_by_position(scores, ["cat", "the"], asking, answers),
        {
            f"head {h}, {verb}, {word}": scores[a, h, w]
            for h in range(2)
            for a, verb in enumerate(("saw", "chased"))
            for w, word in enumerate(("cat", "the"))
        },
        alt=(
            f"where who is, position 7, “cat” scores {scores[1, 0, 0, 7]:.1f}",
            f"where whom is, position 4 and 5, “cat” scores {scores[0, 1, 0, 4]:.1f}",
        ),
    )


def loss_of_share():
    """The marks stand at the cross-entropy of their shares, and every halving adds as much."""
    for share, halvings in ((0.3, 1), (0.25, 2), (0.0074, 7)):
        shares = torch.tensor([*(0.5**n for n in range(halvings + 1)), share]).double()
        logits = torch.stack([shares, 1 - shares], dim=-1).log()  # the first of two is right
        losses = F.cross_entropy(logits, torch.zeros(len(shares)).long(), reduction="none")
        yield Shown(
            drawings.loss_of_share(shares[-1], "dog"),
            {"halvings": losses[:-1], "model": losses[-1:]},
            written=(f"loss {losses[-1]:.2f}",),
        )


def distance_waves():
    """The waves of a head: what each pair adds as the module turns the keys."""
    q, k = randn(8), randn(8).flip(0)
    q[2:4] = k[2:4] = torch.tensor([3.0, 2.0])  # the tallest is pair 1
    k[3] = -2
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


# ------------------------------------------------------------------------------------------- layers
def gradients_way_back():
    """The arrows are as wide as the largest gradient, whatever its sign."""
    shapes = {"answers": (2, 9), "row": (8,), "weights": (2, 6, 6), "scores": (2, 6, 6)}
    gradients = {name: randn(*shape) for name, shape in shapes.items()} | {"W_Q": -randn(8, 8)}
    largest = torch.stack([gradient.abs().max() for gradient in gradients.values()])
    written = tuple(f"{size:.3f}" for size in largest.tolist())
    yield Shown(drawings.gradients_way_back(gradients), {"largest": largest}, written=written)


def who_asks():
    yield Shown(drawings.who_asks(), {})


def residual_stream():
    """As wide as the row is long, and so is what each sublayer adds."""
    rows = randn(5, 8).cumsum(0)
    lengths = [x.square().sum(-1).sqrt() for x in (rows, rows[1:] - rows[:-1])]
    names = ["attention 1", "feed-forward 1", "attention 2", "feed-forward 2"]
    yield Shown(
        drawings.residual_stream(rows, "dog", names),
        dict(zip(("rows", "changes"), lengths, strict=True)),
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


ROWS = {name: make for name, make in globals().items() if name in drawings.__all__}
