import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention import padding_mask
from attention.transformer.encoder import Encoder, EncoderLayer
from tests.unit.cases import assert_close
from tests.unit.refusals import refusals
from tests.unit.transformer.torchs_layers import BAND, IDS, ORDERS, compare, randomised, vectors

MASKS = {
    "none": (None, {}),
    "padding": (padding_mask(IDS, 0), {"src_key_padding_mask": IDS == 0}),
    "causal": (torch.ones(6, 6).tril() == 1, {"mask": torch.ones(6, 6).triu(1) == 1}),
    "padding and band": (
        padding_mask(IDS, 0) & BAND,
        {"src_key_padding_mask": IDS == 0, "mask": ~BAND},
    ),
}


def torchs_layer(**kwargs):
    return nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, **{"dropout": 0.0} | kwargs)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("order", ORDERS)
def test_a_layer_equals_torchs_in_values_and_gradients(order, mask):
    theirs = randomised(torchs_layer(**ORDERS[order]))
    ours = EncoderLayer.from_torch(theirs)
    x, (our_mask, their_mask) = vectors(2, 6, 8), MASKS[mask]
    output, weights = ours(x, our_mask)
    their_mask = {{"mask": "src_mask"}.get(name, name): m for name, m in their_mask.items()}
    compare(ours, theirs, output, theirs(x, **their_mask), [x], EncoderLayer.from_torch)
    without, nothing = ours(x, our_mask, need_weights=False)
    assert_close(without, output)
    assert weights is not None and nothing is None


@pytest.mark.parametrize("last_norm", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_the_encoder_equals_torchs_in_values_and_gradients(order, last_norm):
    norm, layer = nn.LayerNorm(8) if last_norm else None, torchs_layer(**ORDERS[order])
    theirs = randomised(nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False))
    ours = Encoder.from_torch(theirs)
    x, (our_mask, their_mask) = vectors(2, 6, 8), MASKS["padding and band"]
    output, _ = ours(x, our_mask)
    compare(ours, theirs, output, theirs(x, **their_mask), [x], Encoder.from_torch)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_stands_where_torchs_stands(norm_first):
    """The same draws in the same order give the same output, in training; none in evaluation.

    One sentence: torch lays several out in another order in memory, and draws in that order.
    """
    theirs = randomised(torchs_layer(dropout=0.4, norm_first=norm_first, activation=F.gelu))
    ours, x = EncoderLayer.from_torch(theirs), vectors(1, 6, 8)
    torch.manual_seed(5)
    expected = theirs(x)
    torch.manual_seed(5)
    output, _ = ours(x, need_weights=False)
    assert_close(output, expected)
    evaluated, _ = ours.eval()(x)
    assert_close(evaluated, theirs.eval()(x))
    assert not torch.allclose(evaluated, output)


@pytest.mark.parametrize("norm_first", [False, True])
def test_six_layers_one_after_the_other(norm_first):
    encoder = randomised(Encoder(8, 2, 16, norm_first=norm_first, activation=F.gelu))
    x, mask = vectors(2, 6, 8), padding_mask(IDS, 0)
    output, weights = encoder(x, mask)
    for layer, seen in zip(encoder.layers, weights, strict=True):
        x, alone = layer(x, mask)
        assert_close(seen, alone)
    assert len(weights) == 6
    assert isinstance(encoder.norm, nn.LayerNorm) == norm_first
    assert_close(output, encoder.norm(x))
    without, nothing = encoder(vectors(2, 6, 8), mask, need_weights=False)
    assert_close(without, output)
    assert nothing is None


@pytest.mark.parametrize("options", [{"layer_norm_eps": 1e-2}, {"bias": False}], ids=str)
def test_from_torch_keeps_what_else_a_layer_has(options):
    theirs = randomised(torchs_layer(dropout=0.2, **options)).eval()
    ours, x = EncoderLayer.from_torch(theirs), vectors(2, 6, 8)
    assert_close(ours(x)[0], theirs(x))
    dropouts = [m.p for m in ours.modules() if isinstance(m, nn.Dropout)]
    assert dropouts == [0.2, 0.2]
    assert ours.self_attention.attend.dropout == 0.2
    assert not any(module.training for module in ours.modules())
    with torch.no_grad():  # a copy: what happens to one does not happen to the other
        for parameter in theirs.parameters():
            parameter.zero_()
    assert all(parameter.any() for parameter in ours.parameters())


test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: EncoderLayer(4, 2, 8, norm_first=True)(torch.zeros(2, 5, 8)),
            "the last axis of x must be d_model=4, got 8 in shape (2, 5, 8)",
        ),
        (
            lambda: EncoderLayer.from_torch(nn.TransformerDecoderLayer(8, 2)),
            TypeError,
            "layer must be a torch.nn.TransformerEncoderLayer, got TransformerDecoderLayer",
        ),
        (
            lambda: Encoder.from_torch(torchs_layer()),
            TypeError,
            "encoder must be a torch.nn.TransformerEncoder, got TransformerEncoderLayer",
        ),
    ]
)
