"""What the tests of all sparse computations compare with and measure."""

import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attention import scaled_dot_product_attention
from tests.unit.cases import assert_close, assert_gradients_close


def qkv(seq: int, *, batch: int = 2, heads: int = 2, seed: int = 0) -> list[Tensor]:
    """Query, key and value in float64; the values are wider than the keys."""
    rng = torch.Generator().manual_seed(seed)
    return [
        torch.randn(batch, heads, seq, width, dtype=torch.float64, generator=rng).requires_grad_()
        for width in (3, 3, 4)
    ]


def zeros(**change) -> dict[str, Any]:
    """Query, key and value of six tokens, and what is changed of them or given besides."""
    return {name: torch.zeros(1, 1, 6, 2) for name in ("query", "key", "value")} | change


def paddings(seq: int, *, batch: int = 2, heads: int = 2) -> dict[str, Tensor | None]:
    """Padding masks of every shape: keys at the start are missing, single ones, or all."""
    rng = torch.Generator().manual_seed(seq)
    single = torch.rand(batch, heads, 1, seq, generator=rng) < 0.7
    late = torch.arange(seq) >= torch.tensor([seq // 2, 0])[:, None]
    return {
        "none": None,
        "per sentence": late[:, None, None],
        "per head": single,
        "one for all": single[0, 0],
        "nothing left": torch.zeros(1, 1, 1, 1, dtype=torch.bool),
    }


def in_a_loop(seq: int, sees: Callable) -> Tensor:
    """The mask of a pattern, (query, key), asked for each pair by itself."""
    return torch.tensor([[bool(sees(query, key)) for key in range(seq)] for query in range(seq)])


def assert_equals_dense(attend: Callable, pattern: Tensor, inputs: list[Tensor], padding) -> None:
    """Compare output and gradients with dense attention under the pattern's mask.

    Without gradients the work is done in pieces: here of one block each, and of a few.
    """
    before = [x.detach().clone() for x in inputs]
    output = attend(*inputs, padding)
    mask = pattern[None, None] if padding is None else pattern & padding
    expected, _ = scaled_dot_product_attention(*inputs, mask.expand(*mask.shape[:-1], len(pattern)))
    assert_close(output, expected)
    for numbers in (1, 200):
        with torch.no_grad(), mock.patch("attention.sparse.blocks.NUMBERS_AT_ONCE", numbers):
            assert_close(attend(*inputs, padding), expected)
    assert_gradients_close(output, expected, inputs)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))


class LargestTensor(TorchDispatchMode):
    """Watches every tensor that is made, also on the way back, and the bytes held at a time."""

    numel = floats = peak = 0

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[int, int] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run the operation and look at what it returns."""
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.numel = max(self.numel, tensor.numel())
                storage = tensor.untyped_storage()
                if tensor.is_floating_point():
                    held = storage.nbytes() // tensor.itemsize  # views hold less
                    self.floats = max(self.floats, held)
                if storage._cdata not in self.held:
                    self.held[storage._cdata] = storage.nbytes()
                    weakref.finalize(storage, self.held.pop, storage._cdata)
                    self.peak = max(self.peak, sum(self.held.values()))
        return result


def largest_piece(attend: Callable, seq: int, numbers: int) -> int:
    """How many floats the largest tensor has that is made without gradients, in such pieces."""
    inputs = [torch.randn(1, 2, seq, 2) for _ in range(3)]
    padding = (torch.arange(seq) > 2)[None, None, None]
    pieces = mock.patch("attention.sparse.blocks.NUMBERS_AT_ONCE", numbers)
    with pieces, LargestTensor() as watch, torch.no_grad():
        attend(*inputs, padding)
    return watch.floats


def largest_tensor(attend: Callable, seq: int) -> int:
    """How many numbers the largest tensor has, forward and backward, for one head."""
    inputs = [torch.randn(1, 1, seq, 2, requires_grad=True) for _ in range(3)]
    padding = (torch.arange(seq) > 2)[None, None, None]
    with LargestTensor() as watch:
        attend(*inputs, padding).sum().backward()
    return watch.numel
