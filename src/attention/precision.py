"""Sums in float32 where the inputs are of half precision, as fused kernels keep them.

The range of float16 ends at 65,504, and bfloat16 has 8 binary digits, so a sum over thousands of
tokens overflows in the first and stops growing in the second.
"""

from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def summed_in_float32(attend: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Let `attend` compute in float32 where its tensors are of half precision, autocast or not.

    Its output has the dtype of its first argument. float32 and float64 pass through unchanged.
    """

    @wraps(attend)
    def attend_in_float32(first: Tensor, *others: Tensor | None, **options: object) -> Tensor:
        with torch.autocast(first.device.type, enabled=False):
            wide = (to_float32(x) if isinstance(x, Tensor) else x for x in (first, *others))
            return attend(*wide, **options).to(first.dtype)

    return attend_in_float32


def autocast_dtype(x: Tensor) -> torch.dtype | None:
    """The dtype that autocast gives products of x; None if it is off, for float64 and on meta."""
    device = x.device.type
    on = device != "meta" and x.dtype != torch.float64 and torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if on else None


def to_float32(x: Tensor) -> Tensor:
    """Return x, in float32 if it is of half precision."""
    return x.float() if x.dtype in HALF else x
