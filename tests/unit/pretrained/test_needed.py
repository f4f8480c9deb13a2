"""A part that is taken away is gone, wherever it was: written out once more. The rest stays."""

import pytest
import torch

from attention.masks import padding_mask
from attention.pretrained import load
from attention.pretrained.needed import PARTS, without
from attention.trained import dates, relative_clauses, who_and_whom


@pytest.mark.parametrize("part", [None, "divisor", "queries", "scores", "mask", "W_O"])
def test_attention_without_a_part_is_the_formula_without_it(part):
    model = who_and_whom.load().double().requires_grad_(False)
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)).double()
    attention, merged = model.attention, torch.zeros_like(x)
    for i, n in enumerate((5, 3)):  # tokens
        for head in (slice(0, 4), slice(4, 8)):
            q, k, v = (w(x[i])[:, head] for w in (attention.w_q, attention.w_k, attention.w_v))
            q = q[:n].mean(0).repeat(5, 1) if part == "queries" else q
            e = (q @ k.T * {"divisor": 1, "scores": 0}.get(part, 0.5)).exp()
            e[:, 5 if part == "mask" else n :] = 0
            merged[i, :, head] = e / e.sum(1, keepdim=True) @ v
    mask = padding_mask(torch.tensor([[5, 9, 3, 7, 8], [4, 6, 2, 0, 0]]), 0)
    less = without(model, part) if part else model
    for need_weights in (True, False):
        ours, _ = less.attention(x, mask=mask, need_weights=need_weights)
        torch.testing.assert_close(ours, merged if part == "W_O" else attention.w_o(merged))


@pytest.mark.parametrize("part", ["residual", "norm", "feed-forward"])
def test_a_layer_without_a_part_is_the_sum_without_it(part):
    model = dates.load("transformer").requires_grad_(False)
    whole, less = model.transformer.decoder, without(model, part).transformer.decoder
    x, memory = torch.randn(2, 2, 5, 48, generator=torch.Generator().manual_seed(0))
    y, layer = x, whole.layers[0]
    steps = [
        (layer.self_attention_norm, lambda rows: layer.self_attention(rows, causal=True)[0]),
        (layer.cross_attention_norm, lambda rows: layer.cross_attention(rows, memory)[0]),
        (layer.feed_forward_norm, layer.feed_forward),
    ]
    for norm, sublayer in steps[:2] if part == "feed-forward" else steps:
        new = sublayer(y if part == "norm" else norm(y))
        y = new if part == "residual" else y + new
    torch.testing.assert_close(less(x, memory)[0], y if part == "norm" else whole.norm(y))


def test_a_date_writer_sees_the_future_and_no_padding_and_loses_its_positions():
    model, (letters, signs) = dates.load("transformer"), dates.encode(dates.held_out_dates()[:20])
    seen = without(model, "mask").transformer(letters, signs)
    assert (seen.self_weights[0] > 0).all()
    assert not seen.encoder_weights[0].masked_select(~padding_mask(letters, 0)).any()
    encode = without(model, "positions").transformer.encode
    torch.testing.assert_close(encode(letters)[0], encode(letters.flip(1))[0].flip(1))


def test_models_stay_whole_and_what_they_lack_is_none():
    model = relative_clauses.load(2)
    assert all(without(model, part).to_who.weight is model.to_who.weight for part in PARTS)
    right = relative_clauses.accuracy(model, relative_clauses.new_clauses())
    assert right == pytest.approx(relative_clauses.measured(2)["all"], abs=1e-4)
    of_layers, verbs = {"residual", "norm", "feed-forward"}, who_and_whom.load()
    assert {part for part in PARTS if without(verbs, part) is None} == of_layers
    with pytest.raises(ValueError, match="part='heads' must be one of 'divisor', 'queries'"):
        without(model, "heads")


@pytest.mark.slow
def test_smollm2_without_its_feed_forward_layers():
    model, ids = load().model, torch.tensor([[504, 3575, 282, 4649]])
    x = model.embedding(ids)
    for layer in model.layers:
        x = x + layer.self_attention(layer.self_attention_norm(x), causal=True)[0]
    torch.testing.assert_close(without(model, "feed-forward").read(ids)[0], model.norm(x))
