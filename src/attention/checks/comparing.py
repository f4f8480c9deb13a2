"""Compare two tensors, and say where they differ."""

import math

import torch
from torch import Tensor

# float32 keeps seven digits, and a softmax of scores as large as 500 keeps about four of them.
TOLERANCE = 1e-4


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors agree in dtype, shape and numbers; float32 and float64 count as one."""
    kinds = {torch.float64: torch.float32}
    if a.shape != b.shape or kinds.get(a.dtype, a.dtype) != kinds.get(b.dtype, b.dtype):
        return False
    return bool(close(a, b).all())


def close(a: Tensor, b: Tensor) -> Tensor:
    return torch.isclose(a.double(), b.double(), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


def difference(parts: dict[str, str], yours: tuple, right: tuple, *, rule: bool = True) -> str:
    """Say where the first wrong part differs: in shape, in dtype, or in which numbers.

    rule: whether to say as well what all that differs has in common, where the mistake has no name.
    """
    pairs = zip(parts.items(), yours, right, strict=False)
    (name, axes), mine, due = next(pair for pair in pairs if not same(pair[1], pair[2]))
    axes = f"({axes.replace(' ', ', ')})" if axes else "a single number"
    if mine.shape != due.shape:
        return (
            f"the shape of your {name} is {tuple(mine.shape)}, "
            f"expected is {tuple(due.shape)} = {axes}."
            f"{wrong_axes(mine, due, axes) if rule else ''}"
        )
    kinds = [str(tensor.dtype).removeprefix("torch.") for tensor in (mine, due)]
    if kinds[0] != kinds[1] and kinds != ["float64", "float32"]:
        holds = "a query may attend" if name == "mask" else "it holds"
        way_out = f" True where {holds}, False where not." if kinds[1] == "bool" else ""
        return f"the dtype of your {name} is {kinds[0]}, expected is {kinds[1]}.{way_out}"
    if not due.ndim:
        numbers = in_digits(mine.item(), due.item())
        return f"your {name} is {numbers[0]}, expected is {numbers[1]}."
    wrong = ~close(mine, due)
    not_due = mine.isnan() & ~due.isnan()
    if not_numbers := int(not_due.sum()):
        first = not_due.nonzero()[0].tolist()
        return (
            f"{not_numbers} of {mine.numel()} entries of your {name} are NaN, not a number, the "
            f"first at {first} of {axes}. NaN comes from 0/0, from inf - inf, and from a softmax "
            "over nothing but -inf."
        )
    first = wrong.nonzero()[0].tolist()
    numbers = in_digits(mine[tuple(first)].item(), due[tuple(first)].item())
    text = (
        f"the first entry of your {name} that differs is {first} of {axes}: "
        f"yours {numbers[0]}, expected {numbers[1]}. {int(wrong.sum())} of {mine.numel()} differ"
    )
    shared = in_common(mine, due, wrong, axes) if rule else ""
    if mine.dtype == torch.bool or due.isnan().any():
        return f"{text}.{shared}"
    most = (mine - due).abs().max().item()
    most = f"{most:,}" if isinstance(most, int) else f"{most:.2g}"
    return f"{text}, by {most} at most.{shared}"


def wrong_axes(mine: Tensor, due: Tensor, axes: str) -> str:
    """What is wrong with a shape, where a sentence says more than the two shapes."""
    if mine.ndim != due.ndim:
        return f" Yours has {mine.ndim} axes, and {due.ndim} are expected."
    if sorted(mine.shape) == sorted(due.shape):
        return " The axes stand in another order."
    pairs = zip(names_of(axes), zip(mine.shape, due.shape, strict=True), strict=True)
    other = [f"{name} is {a} long, and {b} is expected" for name, (a, b) in pairs if a != b]
    return f" Axis by axis: {'; '.join(other)}."


def names_of(axes: str) -> list[str]:
    """The name of each axis; where two have the same one, as in a square matrix, with its place."""
    names = axes.strip("()").split(", ")
    return [
        name if names.count(name) == 1 else f"{name} (axis {axis})"
        for axis, name in enumerate(names)
    ]


def in_common(mine: Tensor, due: Tensor, wrong: Tensor, axes: str) -> str:
    """What all entries that differ have in common, where there is anything."""
    a, b = mine.double(), due.double()
    if mine.is_floating_point() and bool((a.isfinite() & b.isfinite()).all()):
        if not a.any():
            return " All of yours are 0."
        factor = (a * b).sum() / (b * b).sum()
        if wrong.numel() > 1 and close(a, factor * b).all():
            turned = " All signs are the other way round." if close(factor, -b.new_ones(())) else ""
            return turned or f" All of yours are {factor:.4g} times what is expected."
        if mine.numel() > 2 and close(a.flatten().sort()[0], b.flatten().sort()[0]).all():
            moved = "an axis was cut, joined or moved in another way"
            return f" The right numbers are all there, in other places: {moved}."
        off = a - b
        if off.ndim > 1 and close(off, off.flatten(0, -2)[0].expand_as(off)).all():
            return " All rows are off by the same vector."
        if off.abs().max() < 0.01 * b.abs().max():
            return " All are close: something was rounded, or something small was added or cut off."
    said = ""
    for axis, (name, size) in enumerate(zip(names_of(axes), wrong.shape, strict=False)):
        hit = wrong.movedim(axis, 0).reshape(size, -1).any(dim=1)
        if 1 < size < 20 and not hit.all():
            right, at = (x.nonzero().flatten().tolist() for x in (~hit, hit))
            said += f" Along {name} it is right at {right} and wrong at {at}."
    return said


def in_digits(a: float, b: float) -> tuple[str, str]:
    """Two numbers with two decimals, or as many as it takes to tell them apart."""
    if isinstance(a, bool):
        return str(a), str(b)
    if isinstance(a, int):  # a count
        return f"{a:,}", f"{b:,}"
    if not (math.isfinite(a) and math.isfinite(b)):
        return f"{a:.3g}", f"{b:.3g}"
    for decimals in range(2, 8):
        texts = tuple(f"{round(x, decimals) + 0.0:.{decimals}f}" for x in (a, b))  # no -0.00
        if texts[0] != texts[1]:
            break
    return texts
