import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention import causal_mask, padding_mask
from attention.transformer.decoder import Decoder, DecoderLayer
from tests.unit.cases import assert_close, gradients
from tests.unit.refusals import refusals
from tests.unit.transformer.torchs_layers import BAND, IDS, ORDERS, compare, randomised, vectors

TARGET = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]])
FUTURE = torch.ones(5, 5).triu(1) == 1  # torch's polarity: True = may not attend

MASKS = {
    "causal alone": ((None, None), {}),
    "padding": (
        (padding_mask(TARGET, 0), padding_mask(IDS, 0)),
        {"tgt_key_padding_mask": TARGET == 0, "memory_key_padding_mask": IDS == 0},
    ),
    "bands": (
        (BAND[:5, :5], BAND[:5]),
        {"tgt_mask": FUTURE | ~BAND[:5, :5], "memory_mask": ~BAND[:5]},
    ),
}


def torchs_layer(**kwargs):
    return nn.TransformerDecoderLayer(8, 2, 12, batch_first=True, **{"dropout": 0.0} | kwargs)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("order", ORDERS)
def test_a_layer_equals_torchs_in_values_and_gradients(order, mask):
    theirs = randomised(torchs_layer(**ORDERS[order]))
    ours = DecoderLayer.from_torch(theirs)
    x, memory, (our_masks, their_masks) = vectors(2, 5, 8), vectors(2, 6, 8, seed=2), MASKS[mask]
    output, *weights = ours(x, memory, *our_masks)
    expected = theirs(x, memory, **{"tgt_mask": FUTURE} | their_masks)
    compare(ours, theirs, output, expected, [x, memory], DecoderLayer.from_torch)
    without, *nothing = ours(x, memory, *our_masks, need_weights=False)
    assert_close(without, output)
    assert None not in weights and nothing == [None, None]


@pytest.mark.parametrize("last_norm", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_the_decoder_equals_torchs_in_values_and_gradients(order, last_norm):
    norm = nn.LayerNorm(8) if last_norm else None
    theirs = randomised(nn.TransformerDecoder(torchs_layer(**ORDERS[order]), 3, norm))
    ours = Decoder.from_torch(theirs)
    x, memory = vectors(2, 5, 8), vectors(2, 6, 8, seed=2)
    our_masks, their_masks = MASKS["padding"]
    output, *_ = ours(x, memory, *our_masks)
    expected = theirs(x, memory, FUTURE, **their_masks)
    compare(ours, theirs, output, expected, [x, memory], Decoder.from_torch)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_stands_where_torchs_stands(norm_first):
    """The same draws in the same order give the same output, in training; none in evaluation.

    One sentence: torch lays several out in another order in memory, and draws in that order.
    """
    theirs = randomised(torchs_layer(dropout=0.4, norm_first=norm_first, activation=F.gelu))
    ours, x, memory = DecoderLayer.from_torch(theirs), vectors(1, 5, 8), vectors(1, 6, 8, seed=2)
    torch.manual_seed(5)
    expected = theirs(x, memory, FUTURE)
    torch.manual_seed(5)
    output, *_ = ours(x, memory, need_weights=False)
    assert_close(output, expected)
    evaluated, *_ = ours.eval()(x, memory)
    assert_close(evaluated, theirs.eval()(x, memory, FUTURE))
    assert not torch.allclose(evaluated, output)


@pytest.mark.parametrize("norm_first", [False, True])
def test_six_layers_one_after_the_other(norm_first):
    decoder = randomised(Decoder(8, 2, 16, norm_first=norm_first))
    x, memory = vectors(2, 5, 8), vectors(2, 6, 8, seed=2)
    masks = padding_mask(TARGET, 0), padding_mask(IDS, 0)
    output, self_weights, cross_weights = decoder(x, memory, *masks)
    expected = x
    for i, layer in enumerate(decoder.layers):
        expected, seen, seen_across = layer(expected, memory, *masks)
        assert_close(self_weights[i], seen)
        assert_close(cross_weights[i], seen_across)
    assert len(self_weights) == len(cross_weights) == len(decoder.layers) == 6
    assert_close(output, decoder.norm(expected))
    assert isinstance(decoder.norm, nn.LayerNorm) == norm_first
    without, *nothing = decoder(x, memory, *masks, need_weights=False)
    assert_close(without, output)
    assert nothing == [None, None]


def test_masks_that_leave_nothing_give_finite_numbers():
    decoder, x = randomised(Decoder(8, 2, 16, n_layers=2)), vectors(1, 4, 8)
    memory, nothing = vectors(1, 3, 8, seed=2), torch.zeros(1, 1, dtype=torch.bool)
    output, *_ = decoder(x, memory, causal_mask(4).T & ~causal_mask(4), nothing)
    wanted = [x, memory, *decoder.parameters()]
    assert all(g.isfinite().all() for g in gradients([output], wanted))


def test_from_torch_keeps_what_else_a_layer_has():
    theirs = randomised(torchs_layer(dropout=0.2, layer_norm_eps=1e-2, bias=False)).eval()
    ours = DecoderLayer.from_torch(theirs)
    x, memory = vectors(2, 5, 8), vectors(2, 6, 8, seed=2)
    assert_close(ours(x, memory)[0], theirs(x, memory, FUTURE))
    assert (ours.self_attention.attend.dropout, ours.cross_attention.attend.dropout) == (0.2, 0.2)
    assert [m.p for m in ours.modules() if isinstance(m, nn.Dropout)] == [0.2, 0.2]
    assert not any(module.training for module in ours.modules())
    with torch.no_grad():  # a copy: what happens to one does not happen to the other
        for parameter in theirs.parameters():
            parameter.zero_()
    assert all(parameter.any() for parameter in ours.parameters())


X = torch.zeros(2, 5, 8)
test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: DecoderLayer(4, 2, 8, norm_first=True)(X, X[..., :4]),
            "the last axis of x must be d_model=4, got 8 in shape (2, 5, 8)",
        ),
        (
            lambda: Decoder(8, 2, 16)(X, X[:1]),
            "x and memory must have the same batch, a source for each target, "
            "got x (2, 5, 8) and memory (1, 5, 8)",
        ),
        (
            lambda: DecoderLayer.from_torch(nn.TransformerEncoderLayer(8, 2)),
            TypeError,
            "layer must be a torch.nn.TransformerDecoderLayer, got TransformerEncoderLayer",
        ),
        (
            lambda: Decoder.from_torch(torchs_layer()),
            TypeError,
            "decoder must be a torch.nn.TransformerDecoder, got TransformerDecoderLayer",
        ),
    ]
)
