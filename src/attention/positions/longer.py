"""Rotary angles for longer texts than a model was trained on: what published models do to them.

A pair that turned a whole round within the training length has met every angle, and one that did
not would meet angles that training never showed. So the slow pairs are slowed down by the factor by
which texts grow, which keeps their angles among the known ones. The fast pairs, which tell
neighbours apart, stay as they are, and between the two lies a ramp. Models are then trained further
for a while with the new angles.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float64
from torch import Tensor

from attention.arguments import require_finite, require_size

Angles = Callable[[Float64[Tensor, " pairs"]], Float64[Tensor, " pairs"]]


def interpolated_angles(factor: float) -> Angles:
    """All angles divided by the factor: position m turns as m / factor did.

    Source:
        Chen et al. 2023, equation 4.

    Example:
        >>> import torch
        >>> from attention.positions.longer import interpolated_angles
        >>> interpolated_angles(2.0)(torch.tensor([1.0, 0.5], dtype=torch.float64))
        tensor([0.5000, 0.2500], dtype=torch.float64)
    """
    require_factor(factor)
    return lambda theta: theta / factor


def llama3_angles(
    factor: float, trained_length: int, *, low: float = 1.0, high: float = 4.0
) -> Angles:
    """Llama 3.1's angles: pairs with fewer than `low` rounds in the trained length are slowed down.

    Pairs that turn more than `high` rounds in that length stay as they are. In between, a pair's
    angle is a mixture of the two, by how many rounds it turns.

    Args:
        factor: how much longer texts get.
        trained_length: the length that the model was trained on.
        low: the number of rounds up to which a pair is slowed down by the whole factor.
        high: the number of rounds from which a pair stays as it is.

    Raises:
        ValueError: factor is below 1, or low is not below high.

    Source:
        Dubey et al. 2024 for Llama 3.1; apply_scaling of meta-llama/llama-models for the ramp.

    Example:
        >>> import torch
        >>> from attention.positions.longer import llama3_angles
        >>> llama3_angles(8.0, 8192)(torch.tensor([1.0, 1e-4], dtype=torch.float64))
        tensor([1.0000e+00, 1.2500e-05], dtype=torch.float64)
    """
    require_ramp(factor, trained_length, low, high)

    def angles(theta: Float64[Tensor, " pairs"]) -> Float64[Tensor, " pairs"]:
        rounds = trained_length * theta / (2 * math.pi)
        return mixed(theta, factor, ((high - rounds) / (high - low)).clamp(0, 1))

    return angles


def yarn_angles(
    factor: float,
    trained_length: int,
    base: float,
    *,
    low: float = 1.0,
    high: float = 32.0,
) -> Angles:
    """YaRN's angles, with a ramp over the pairs themselves, from `high` rounds down to `low`.

    The first pair of the ramp and the last one are rounded outwards, as in the authors' code.

    Args:
        factor: as for `llama3_angles`.
        trained_length: as for `llama3_angles`.
        low: as for `llama3_angles`; beta_slow in the authors' code.
        high: as for `llama3_angles`; beta_fast in the authors' code.
        base: that of the rotary angles, which determines the pair that turns a given number of
        rounds.

    Raises:
        ValueError: factor is below 1, or low is not below high.

    Source:
        Peng et al. 2023 (YaRN; this part is called NTK-by-parts), and the authors' code,
        jquesnelle/yarn, for the ramp's ends.

    Example:
        >>> import torch
        >>> from attention.positions.longer import yarn_angles
        >>> theta = 10000.0 ** -torch.linspace(0, 1, 5, dtype=torch.float64)[:4]
        >>> yarn_angles(4.0, 2048, 10000.0)(theta) / theta
        tensor([1.0000, 1.0000, 0.6250, 0.2500], dtype=torch.float64)
    """
    require_ramp(factor, trained_length, low, high)
    require_finite("base", base)

    def angles(theta: Float64[Tensor, " pairs"]) -> Float64[Tensor, " pairs"]:
        n = len(theta)

        def pair_of(rounds: float) -> float:  # the index of the pair that turns so many rounds
            return n * math.log(trained_length / (rounds * 2 * math.pi)) / math.log(base)

        first = max(math.floor(pair_of(high)), 0)
        last = min(math.ceil(pair_of(low)), 2 * n - 1)
        pair = torch.arange(n, dtype=theta.dtype)
        ramp = (pair - first) / max(last - first, 1e-3)
        return mixed(theta, factor, ramp.clamp(0, 1))

    return angles


def yarn_length(factor: float) -> float:
    """What YaRN multiplies turned queries and keys by: 0.1 · ln(factor) + 1, whose square is 1/t.

    Source:
        Peng et al. 2023 (YaRN; its temperature t).

    Example:
        >>> from attention.positions.longer import yarn_length
        >>> round(yarn_length(8.0), 4)
        1.2079
    """
    require_factor(factor)
    return 0.1 * math.log(factor) + 1


def mixed(
    theta: Float64[Tensor, " pairs"], factor: float, slowed: Float64[Tensor, " pairs"]
) -> Float64[Tensor, " pairs"]:
    """The angles, with the part `slowed` of each divided by the factor."""
    return theta * (1 - slowed) + theta / factor * slowed


def require_factor(factor: float) -> None:
    require_finite("factor", factor)
    if factor < 1:
        raise ValueError(f"factor says how much longer texts get, at least 1, got {factor}")


def require_ramp(factor: float, trained_length: int, low: float, high: float) -> None:
    require_factor(factor)
    require_size("trained_length", trained_length)
    require_finite("low", low)
    require_finite("high", high)
    if not 0 < low < high:
        raise ValueError(f"low must be above 0 and below high, got low={low} and high={high}")
