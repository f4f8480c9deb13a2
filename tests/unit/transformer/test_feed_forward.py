import torch
from torch import nn
from torch.nn import functional as F

from attention.transformer.feed_forward import FeedForward
from tests.unit.cases import assert_close, assert_gradients_close
from tests.unit.refusals import refusals
from tests.unit.transformer.torchs_layers import randomised, vectors


def test_equals_the_formula_token_by_token():
    """max(0, x·W_1 + b_1)·W_2 + b_2, and with a module, the exact gelu, x · P(normal <= x)."""
    x = vectors(2, 3, 4)
    for activation, formula in (
        (F.relu, lambda h: h.clamp(min=0)),
        (nn.GELU(), lambda h: h * (1 + torch.erf(h / 2**0.5)) / 2),
    ):
        module = randomised(FeedForward(4, 7, activation=activation))
        w_1, w_2 = module.w_1, module.w_2
        rows = [
            formula(token @ w_1.weight.T + w_1.bias) @ w_2.weight.T + w_2.bias
            for token in x.flatten(0, 1)
        ]
        output, expected = module(x), torch.stack(rows).unflatten(0, (2, 3))
        assert_close(output, expected)
        wanted = [x, *module.parameters()]
        assert_gradients_close(output, expected, wanted)


def test_dropout_acts_in_between_in_training_only():
    torch.manual_seed(0)
    module, x = FeedForward(4, 7, dropout=1.0), torch.randn(2, 3, 4)
    assert torch.equal(module(x), module.w_2.bias.expand(2, 3, 4))
    module.eval()
    assert not torch.allclose(module(x), module.w_2.bias.expand(2, 3, 4))


test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: FeedForward(4, 8, activation="relu"),
            TypeError,
            "activation must be a function of a tensor",
        ),
        (
            lambda: FeedForward.from_torch(nn.Linear(4, 8)),
            TypeError,
            "layer must be a torch.nn.TransformerEncoderLayer or TransformerDecoderLayer, "
            "got Linear",
        ),
    ]
)
