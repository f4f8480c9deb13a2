"""What a drawing shows besides its tensors: orders, places, and the lines between them."""

import re

import pytest
import torch

from attention import (
    BahdanauDecoder,
    LuongDecoder,
    causal_mask,
    drawings,
    lsh_attention,
    merge_heads,
    sliding_window_mask,
    split_heads,
)
from attention.trained import who_and_whom
from attention.trained.dates import SIGN_NAMES, SIGNS
from attention.trained.who_and_whom import NOUNS, VERBS, VOCABULARY, new_sentences
from tests.unit.drawings.reading import SVG, elements
from tests.unit.drawings.rows import (
    BUCKETS,
    DIRECTIONS,
    ROWS,
    TURNED,
    randn,
)


@pytest.fixture(params=["wide", "narrow"])
def width(request):
    return request.param


@torch.no_grad()
def svgs(name, width):
    """What the row of a drawing draws."""
    return [getattr(shown.drawing, width) for shown in ROWS[name]()]


def lines(svg, pattern):
    """The texts of this form, line by line from the top, each from left to right."""
    found = {}
    for text in elements(svg, "text"):
        if re.fullmatch(pattern, text.text or ""):
            found.setdefault(float(text.get("y")), {})[float(text.get("x"))] = text.text
    return [[words for _, words in sorted(found[y].items())] for y in sorted(found)]


def test_full_dots_of_the_cone_are_the_rows_that_change_the_last(width):
    """Change one token's row before a layer, and see whether the last row changes."""
    local, every = sliding_window_mask(12, 2, causal=True), causal_mask(12)
    expected = []
    for masks in ([local] * 3, [local, local, every]):
        for layer in range(4):
            before = torch.rand(1, 12, generator=torch.Generator().manual_seed(0)).double()
            after = before + torch.eye(12)  # a row for each token that is changed
            for mask in masks[layer:]:
                before, after = (x + x @ mask.double().T for x in (before, after))
            expected.append((after[:, -1] != before[:, -1]).tolist())
    [svg] = svgs("cone", width)
    groups = [group for group in elements(svg, "g") if group.get("data-layer")]
    assert expected == [
        ["fill" in dot.get("class") for dot in group.iter(f"{SVG}circle")] for group in groups
    ]


def test_numbers_of_a_step_stand_in_the_order_of_its_tensor(width):
    q = randn(6, 8)
    orders = q, q.view(6, 2, 4), q.view(6, 2, 4).transpose(0, 1)
    for svg, tensor in zip(svgs("view_then_transpose", width), orders, strict=True):
        written = [float(n.replace("−", "-")) for line in lines(svg, r"−?\d+\.\d") for n in line]
        found = torch.tensor(written).double()
        torch.testing.assert_close(found, tensor.flatten(), rtol=0, atol=0.051)


def test_a_merged_number_wears_the_colour_of_its_head(width):
    [svg] = svgs("merges", width)
    looks = [rect.get("class") for rect in elements(svg, "rect")]
    heads = [int(look[5]) for look in looks if look and look.startswith("head-")]
    named = torch.arange(2.0)[:, None, None].expand(2, 6, 4)
    expected = torch.stack([merge_heads(named[None])[0], named.reshape(6, 8)])
    assert torch.tensor(heads).view(2, 6, 8).equal(expected.int())


def test_a_row_is_asked_for_the_sign_that_it_does_not_see_yet(width):
    [svg] = svgs("teacher_forcing", width)
    names = ["start", *"1973-03-04", "end"]
    signs, *rows = lines(svg, "|".join(names))
    assert signs == names[:-1] and len(rows) == 11
    for t, row in enumerate(rows):
        # What it sees, the next sign where it is hidden, and the same one beside the row.
        assert row == [*names[: t + 1], *names[t + 1 : t + 2][: t < 10], names[t + 1]]
    assert svg.count("stroke-dasharray") == 1 + 10  # in the style, and on the hidden signs
    ids = SIGNS.encode_batch([["<start>", *"1973-03-04", "<end>"]])[0]
    late = drawings.teacher_forcing(
        ids[:-1], ids[:-1], torch.ones(11, 11).bool(), SIGN_NAMES.__getitem__
    )
    assert getattr(late, width).count("stroke-dasharray") == 1


def test_tokens_are_sorted_by_bucket_and_then_by_position(width):
    order = BUCKETS.argsort(stable=True)
    hashed, *_, looks = svgs("sort_cut_look", width)[:4]
    for svg, wanted in ((hashed, torch.arange(8)), (looks, order)):
        rows = [[int(n) for n in line] for line in lines(svg, r"\d") if len(line) == 8]
        assert rows == [wanted.tolist(), BUCKETS[wanted].tolist()]


@pytest.mark.parametrize("asks", range(8))
def test_a_token_looks_where_lsh_attention_does(asks):
    """Whose values move its output? Itself only where it sees nothing else."""
    value, x = torch.eye(8).double()[None, None], DIRECTIONS
    output = lsh_attention(x[None, None], value, BUCKETS[None, None, None], chunk_length=3)
    wanted = set(output[0, 0, asks].nonzero().flatten().tolist()) - {asks}
    steps = drawings.sort_cut_look(x, TURNED, BUCKETS, chunk_length=3, asks=asks)
    said = re.match(rf"Token {asks} looks at ([\d, ]+|none):", steps["4: look"].alt)[1]
    assert {int(n) for n in re.findall(r"\d", said)} == wanted
    assert f"{asks} looks at {said}<" in steps["4: look"].wide


def test_consecutive_heads_of_queries_are_led_to_one_kv_head(width):
    """Of the lines of grouped-query attention two end in each of two places, in order."""
    drawing = drawings.four_caches(
        {"grouped-query": torch.ones(2, 2, 12)}, torch.ones(20), torch.ones(4), n_heads=4
    )
    found = re.findall(r'd="M([\d.]+),46L([\d.]+),66"', getattr(drawing, width))
    starts, ends = ([float(x) for x in each] for each in zip(*found, strict=True))
    assert starts == sorted(starts) and len(starts) == 4
    assert sum(starts[:2]) / 2 == ends[0] == ends[1] < ends[2] == ends[3]


def test_the_curve_of_the_loss_runs_through_the_marks(width):
    svg = svgs("loss_of_share", width)[2]
    [d] = re.findall(r'<path d="M([^"]*)" [^>]*stroke-width="2"', svg)
    curve = torch.tensor([[float(n) for n in at.split(",")] for at in d.split("L")])
    [group] = re.findall(r'<g[^>]*data-tensor="halvings".*?</g>', svg)
    [line] = map(float, re.findall(r"translate\(0 ([\d.]+)\)", group))
    marks = [tuple(map(float, at)) for at in re.findall(r'cx="([^"]+)" cy="([^"]+)"', group)]
    assert len(marks) == 8
    for x, y in marks:
        nearest = (curve - torch.tensor([x, line + y])).norm(dim=-1).min()
        assert nearest < 12, f"no point of the curve is near {x}, {y}"


def test_who_asks_when_is_what_the_modules_do(width):
    """Which of a step's parts is called first: the attention or the recurrence?"""
    drawing = drawings.who_asks()
    for name, decoder in (("Bahdanau", BahdanauDecoder), ("Luong", LuongDecoder)):
        decoder, called = decoder(9, 5, 6, 3), []
        state, attend = decoder.attend_to(torch.randn(1, 4, 6))
        decoder.cell.register_forward_hook(lambda *_, called=called: called.append("GRU"))

        def asked(query, called=called, attend=attend):
            called.append("asks")
            return attend(query)

        decoder.step(torch.randn(1, 5), state, asked)
        said = re.search(rf"{name}: ([^.]*)\.", drawing.alt)[1]
        assert re.findall(r", (GRU|asks):", said) == called
    svg = getattr(drawing, width)
    assert svg.count(">asks<") == svg.count(">GRU<") == 2
    assert svg.index("Bahdanau") < svg.index("Luong")


@torch.no_grad()
def test_a_noun_scores_highest_at_the_position_of_the_verbs_answer():
    """What chapter 2 says of its drawing of scores by position: with any verb, of any noun."""
    model, nouns = who_and_whom.load(8, 2), [1, 4, 7, 11]  # where they are
    x = model.embed(VOCABULARY.encode_batch([[word] * 12 for word in (*VERBS, *NOUNS)]))
    q, k = (split_heads(layer(x), 2) for layer in (model.attention.w_q, model.attention.w_k))
    for asks, answers in ((2, [1, 4]), (8, [7, 11])):
        scores = torch.einsum("ahd,whsd->ahws", q[: len(VERBS), :, asks], k[len(VERBS) :, :, nouns])
        best = torch.tensor(nouns)[scores.argmax(-1)]  # (verb, head, noun)
        assert (best == torch.tensor(answers)[:, None]).all()
    verbs = [verb for sentence in new_sentences(8) for verb in sentence.verbs]
    assert {verb.who - verb.place for verb in verbs} == {-1}
    assert {verb.whom - verb.place for verb in verbs if verb.whom is not None} == {2, 3}
