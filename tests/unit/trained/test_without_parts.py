"""An encoder without some of its parts: equal to the equations, and what the parts cost."""

import pytest
import torch
from torch import nn

from attention import Encoder
from attention.masks import padding_mask
from attention.trained import relative_clauses
from attention.trained.relative_clauses import RelativeClauses, accuracy_by_kind, new_clauses
from attention.trained.without_parts import PARTS, rows_by_sublayer, spread, without_parts

SETS = [(), *((part,) for part in PARTS), ("residual", "layer norm"), ("feed-forward", "residual")]


def small(**options):
    torch.manual_seed(0)
    return Encoder(8, 2, 16, n_layers=3, norm_first=True, **options).double().eval()


def by_equation(encoder, x, mask, parts):
    """Every row that a sublayer leaves, and the output, written out once more."""
    rows = [x]
    for layer in encoder.layers:
        for name, norm, sublayer in (
            ("attention", layer.self_attention_norm, layer.self_attention),
            ("feed-forward", layer.feed_forward_norm, layer.feed_forward),
        ):
            if name not in parts:
                read = x if "layer norm" in parts else norm(x)
                output = sublayer(read, mask=mask)[0] if name == "attention" else sublayer(read)
                x = output if "residual" in parts else x + output
            rows.append(x)
    return rows, x if "layer norm" in parts else encoder.norm(x)


@pytest.mark.parametrize("parts", SETS, ids=" ".join)
def test_what_is_left_is_the_equation(parts):
    encoder, x = small(), torch.randn(2, 5, 8).double()
    mask = padding_mask(torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]), 0)
    before = {name: p.clone() for name, p in encoder.state_dict().items()}
    less = without_parts(encoder, *parts)
    _, expected = by_equation(encoder, x, mask, parts)
    torch.testing.assert_close(less(x, mask, need_weights=False)[0], expected)
    expected, _ = by_equation(encoder, x, None, parts)
    torch.testing.assert_close(rows_by_sublayer(less, x), expected)
    # The encoder that was given is whole, and watching a copy leaves it as it is.
    torch.testing.assert_close(encoder(x)[0], by_equation(encoder, x, None, ())[1])
    torch.testing.assert_close(
        less(x, mask, need_weights=False)[0], by_equation(encoder, x, mask, parts)[1]
    )
    for name, p in encoder.state_dict().items():
        assert torch.equal(p, before[name])


def test_a_copy_has_weights_of_its_own_and_can_be_copied_again():
    encoder, x = small(), torch.randn(1, 4, 8).double()
    less = without_parts(encoder, "residual")
    again = without_parts(less, "residual", "feed-forward")
    with torch.no_grad():
        for p in less.parameters():
            p.zero_()
    torch.testing.assert_close(
        again(x)[0], by_equation(encoder, x, None, ("residual", "feed-forward"))[1]
    )
    assert less(x)[0].abs().max() == 0


def test_dropout_stays():
    encoder = small(dropout=0.5).train()
    x = torch.randn(1, 4, 8).double()
    assert not torch.equal(*(without_parts(encoder, "residual")(x)[0] for _ in range(2)))


def test_what_cannot_be_taken_away_is_refused():
    with pytest.raises(ValueError, match=r"parts must be among 'residual', .* got 'norm'"):
        without_parts(small(), "norm")
    with pytest.raises(ValueError, match="norm_first=True, got Encoder with norm_first=False"):
        without_parts(Encoder(8, 2, 16), "residual")
    with pytest.raises(ValueError, match="norm_first=True, got Linear without one"):
        without_parts(nn.Linear(2, 2), "residual")


def test_spread():
    x = torch.randn(3, 4, 5).double()
    centred = x - x.mean(1, keepdim=True)
    torch.testing.assert_close(spread(x)[1], centred[1].norm() / x[1].norm())
    torch.testing.assert_close(spread(10 * x), spread(x))
    torch.testing.assert_close(spread(centred), torch.ones(3).double())
    assert spread(torch.ones(4, 5)) == 0


def test_what_the_trained_models_lose():
    """The chapter's table, loosely: what it says of each part must stay so."""
    new = new_clauses(400)
    right = {
        part: accuracy_by_kind(without_parts(relative_clauses.load(2), part), new) for part in PARTS
    }
    assert right["feed-forward"]["all"] > 0.95
    assert max(right[part]["all"] for part in PARTS[:3]) < 0.02


def test_a_model_is_trained_without_a_part():
    model = relative_clauses.train(2, 0, steps=3, without=["feed-forward", "layer norm"])
    torch.manual_seed(0)
    start = RelativeClauses(2)
    for name, p in model.named_parameters():
        same = torch.equal(p, dict(start.named_parameters())[name].half().float())
        unused = "feed_forward" in name or "norm" in name
        # A key's bias adds the same to every score of a row: its gradient is nearly 0.
        assert same == unused or "w_k.bias" in name, name
