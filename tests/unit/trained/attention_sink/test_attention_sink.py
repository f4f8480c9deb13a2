"""Attention sinks: the sequences, what the stored models do with the first token, two repairs."""

import math

import pytest
import torch
from torch.nn import functional as F

from attention import MultiHeadAttention, causal_mask
from attention.trained.attention_sink import (
    LAYERS,
    LENGTH,
    START,
    STORED,
    GatedLayer,
    LearnedSink,
    SinkModel,
    accuracy,
    draw_sequences,
    load,
    loss,
    measured,
    new_sequences,
    weight_of_first,
    without_key,
)
from attention.trained.attention_sink.data import LONGEST, SHORTEST, VOCAB_SIZE

NEW = new_sequences(500)


def test_a_part_comes_twice_after_the_start_mark():
    token_ids, determined = draw_sequences(2000, torch.Generator().manual_seed(1))
    assert token_ids.shape == determined.shape == (2000, LENGTH + 1)
    assert (token_ids[:, 0] == START).all() and token_ids[:, 1:].max() == VOCAB_SIZE - 1
    lengths = set()
    for ids, known in zip(token_ids.tolist(), determined.tolist(), strict=True):
        places = [i for i, each in enumerate(known) if each]
        part = len(places) + 1
        assert places == list(range(places[0], places[0] + part - 1))
        second = ids[places[0] : places[0] + part]
        before = [ids[i : i + part] for i in range(1, places[0] - part + 1)]
        assert second in before
        lengths.add(part)
    assert lengths == set(range(SHORTEST, LONGEST + 1))


def test_the_default_precision_changes_no_sequence():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(new_sequences(500).token_ids, NEW.token_ids)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.fixture
def qkv():
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 7, 6, generator=generator, dtype=torch.float64)
    return [x.clone().requires_grad_() for x in (q, k, v)]


@pytest.mark.parametrize("causal", [False, True])
def test_a_learned_sink_is_a_key_more_that_has_no_value(qkv, causal):
    """torch's kernel, with one more column that only the sink's key has, and with a value of 0."""
    sink = LearnedSink(4).double()
    with torch.no_grad():
        sink.sink.copy_(torch.tensor([-1.0, 0.0, 0.5, 2.0]))
    output, weights = sink(*qkv, causal=causal)

    q, k, v = qkv
    extra = torch.zeros(2, 4, 1, 7, dtype=torch.float64)
    column = sink.sink[None, :, None, None] * math.sqrt(6)
    key = torch.cat((F.pad(k, (0, 1)), extra + F.pad(column, (6, 0))), dim=2)
    query = torch.cat((q, torch.ones(2, 4, 7, 1)), dim=-1)
    mask = F.pad(causal_mask(7), (0, 1), value=True) if causal else None
    value = F.pad(v, (0, 0, 0, 1))
    expected = F.scaled_dot_product_attention(query, key, value, mask, scale=1 / math.sqrt(6))
    torch.testing.assert_close(output, expected)
    assert (weights.sum(-1) < 1).all()
    leaves = [*qkv, sink.sink]
    gradients, wanted = (torch.autograd.grad(y.square().sum(), leaves) for y in (output, expected))
    torch.testing.assert_close(gradients, wanted)


def test_a_query_that_sees_nothing_but_its_sink_says_nothing(qkv):
    mask = torch.ones(7, 7, dtype=torch.bool)
    mask[2] = False
    output, weights = LearnedSink(4).double()(*qkv, mask)
    assert not output[:, :, 2].any() and not weights[:, :, 2].any()
    assert output.isfinite().all()


def test_a_gate_stands_between_the_heads_and_their_projection():
    torch.manual_seed(0)
    gated, x = GatedLayer(8, 2).double(), torch.randn(2, 5, 8, dtype=torch.float64)
    plain = MultiHeadAttention(8, 2, bias=False).double()
    with torch.no_grad():
        for name in ("w_q", "w_k", "w_v"):
            getattr(plain, name).weight.copy_(getattr(gated.heads, name).weight)
        plain.w_o.weight.copy_(torch.eye(8))
    merged, weights = plain(x, causal=True)
    gate = 1 / (1 + (-x @ gated.to_gate.weight.T).exp())
    output, its_weights = gated(x, causal=True)
    torch.testing.assert_close(output, (merged * gate) @ gated.w_o.weight.T)
    torch.testing.assert_close(its_weights, weights)


def test_only_three_kinds_of_layer_exist():
    with pytest.raises(
        ValueError, match="layer must be one of plain, learned-sink, gated, got 'x'"
    ):
        SinkModel("x")
    with pytest.raises(
        ValueError, match="layer must be one of plain, learned-sink, gated, got 'x'"
    ):
        measured("x")
    with pytest.raises(ValueError, match="for layer='gated'; it can be plain, learned-sink"):
        load("gated")


def test_without_a_key_only_later_queries_lose_it():
    mask = without_key(5, 2)
    assert (~mask).nonzero().tolist() == [[3, 2], [4, 2]]


@pytest.mark.parametrize("layer", STORED)
def test_the_table_says_what_the_stored_model_does(layer):
    first = measured(layer)[0]
    model, sequences = load(layer), new_sequences()
    mask = without_key(LENGTH, 0)
    assert accuracy(model, sequences) == pytest.approx(first["accuracy"], abs=0.002)
    assert accuracy(model, sequences, mask) == pytest.approx(first["accuracy_without"], abs=0.002)
    assert loss(model, sequences) == pytest.approx(first["loss"], abs=0.01)
    assert loss(model, sequences, mask) == pytest.approx(first["loss_without"], abs=0.01)
    for own, stored in zip(
        weight_of_first(model, sequences), first["weight_of_first"], strict=True
    ):
        assert own == pytest.approx(stored, abs=0.005)


def test_a_plain_model_has_a_sink_and_pays_for_its_loss():
    assert all(len(measured(layer)) == 5 for layer in LAYERS)
    for one in measured("plain"):
        assert max(one["weight_of_first"][0]) < 0.05 and max(one["weight_of_first"][1]) > 0.7
        assert one["loss_without"][1] - one["loss"][1] > 0.7, "what can only be guessed"


def test_a_learned_sink_takes_the_weight_from_the_first_token():
    for one in measured("learned-sink"):
        assert max(map(max, one["weight_of_first"])) < 0.05
        assert one["loss_without"][1] - one["loss"][1] < 0.05


def test_what_the_mark_says_is_little():
    """Its value is short: the weight on it comes to little, of which the others make much."""
    model, (token_ids, _) = load("plain"), NEW
    x = model.positions(model.embedding(token_ids[:, :-1]))
    x = x + model.layers[0](x, causal=True)[0]
    values = model.layers[1].w_v(x).view(len(x), -1, 2, 16).norm(dim=-1)  # (batch, seq, heads)
    assert (values[:, 0].mean(0) < 0.5 * values[:, 8:].mean((0, 1))).all()
