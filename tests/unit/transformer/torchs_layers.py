"""torch's transformer, to compare the book's with: values, gradients, masks the other way round."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.unit.cases import assert_close, gradients, randomise

# Two sentences, of 6 tokens and of 4; and a mask of the tokens at most two apart.
IDS = torch.tensor([[1, 2, 3, 4, 5, 6], [7, 8, 9, 3, 0, 0]])
BAND = (torch.arange(6)[:, None] - torch.arange(6)).abs() <= 2

ORDERS = {
    f"{norm}, {name}": {"norm_first": norm == "pre-norm", "activation": activation}
    for norm in ("post-norm", "pre-norm")
    for name, activation in (("relu", F.relu), ("gelu", F.gelu))
}


def randomised(module: nn.Module, seed: int = 0) -> nn.Module:
    """Draw every parameter, the norms' too, in float64: nothing is left at 1 or 0."""
    module = module.double().train()
    randomise(module, torch.Generator().manual_seed(seed))
    return module


def vectors(*shape: int, seed: int = 1) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=rng).requires_grad_()


def compare(
    ours: nn.Module,
    theirs: nn.Module,
    output: Tensor,
    expected: Tensor,
    inputs: list[Tensor],
    from_torch: Callable[[nn.Module], nn.Module],
) -> None:
    """Compare outputs, and the gradients of inputs and of every parameter by its name here."""
    assert_close(output, expected)
    their_parameters = list(theirs.parameters())
    actual_gradients = gradients([output], [*inputs, *ours.parameters()])
    wanted = gradients([expected], [*inputs, *their_parameters])
    n = len(inputs)
    for actual, gradient in zip(actual_gradients[:n], wanted[:n], strict=True):
        assert_close(actual, gradient)
    # A copy of torch's module that holds gradients instead of weights goes through from_torch too:
    # each gradient then has the name that its weight has here.
    carrier = copy.deepcopy(theirs)
    with torch.no_grad():
        for parameter, gradient in zip(carrier.parameters(), wanted[n:], strict=True):
            parameter.copy_(gradient)
    expected_gradients = dict(from_torch(carrier).named_parameters())
    assert len(expected_gradients) == len(actual_gradients) - n
    for (name, _), actual in zip(ours.named_parameters(), actual_gradients[n:], strict=True):
        assert_close(actual, expected_gradients[name].detach())
