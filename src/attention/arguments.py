"""Argument checks: each error names the argument, what was passed, what was expected, and the fix.

A public function or module checks its arguments once. What it calls inside trusts them.

Every check reads types and shapes, never a tensor's values, so it costs microseconds, does not wait
for an accelerator and leaves `torch.compile` its whole graph.
"""

import math
import operator

import torch
from torch import Tensor, nn

from attention.precision import autocast_dtype


def require_size(name: str, size: int, *, least: int = 1) -> None:
    """Require an int of at least `least`; in an exported program a length may be a symbol."""
    if isinstance(size, bool) or not isinstance(size, (int, torch.SymInt)):
        raise TypeError(f"{name} must be an int, got {size!r} of type {type(size).__name__}")
    if size < least:
        raise ValueError(f"{name} must be at least {least}, got {size}")


def require_index(name: str, index: int) -> int:
    """Require an int of Python, PyTorch or another library, and return it as Python's."""
    try:
        if isinstance(index, bool):
            raise TypeError
        return operator.index(index)
    except TypeError:
        kind = type(index).__name__
        raise TypeError(f"{name} must be an int, got {index!r} of type {kind}") from None


def require_divides(part_name: str, part: int, whole_name: str, whole: int) -> None:
    """Require a number of parts that divides the whole; the error lists those that do."""
    require_size(whole_name, whole)
    require_size(part_name, part)
    if whole % part:
        *others, last = [str(n) for n in range(1, whole + 1) if whole % n == 0]
        can_be = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(
            f"{part_name}={part} does not divide {whole_name}={whole}; it can be {can_be}"
        )


def require_n_heads(d_model: int, n_heads: int) -> None:
    """Require a number of heads that divides d_model."""
    require_divides("n_heads", n_heads, "d_model", d_model)


def letters_of_bias(bias: bool | str) -> str:
    """The letters of the projections that add a bias: of all, of none, or of those named."""
    if isinstance(bias, str) and set(bias) <= set("qkvo"):
        return bias
    if not isinstance(bias, bool):
        raise ValueError(f'bias must be True, False or letters of "qkvo", got {bias!r}')
    return "qkvo" if bias else ""


def require_number(name: str, number: float) -> None:
    """Require a float or an int."""
    if isinstance(number, bool) or not isinstance(number, (int, float, torch.SymFloat)):
        raise TypeError(f"{name} must be a float, got {number!r} of type {type(number).__name__}")


def require_dropout(dropout: float) -> None:
    """Require a probability."""
    require_number("dropout", dropout)
    if not 0.0 <= dropout <= 1.0:
        raise ValueError(f"dropout is a probability between 0 and 1, got {dropout}")


def require_finite(name: str, number: float) -> None:
    """Require a number that is neither infinite nor NaN."""
    require_number(name, number)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {number}")


def require_float_dtype(dtype: torch.dtype | None) -> None:
    """Require a dtype of floating-point numbers, or None for torch's default."""
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(
            f"dtype must be a floating-point dtype of torch, such as torch.float16, got {dtype!r}"
        )


def require_module(name: str, module: nn.Module | None, kind: type[nn.Module] = nn.Module) -> None:
    """Require a module of this kind."""
    if not isinstance(module, kind):
        got = module.__name__ if isinstance(module, type) else type(module).__name__
        raise TypeError(f"{name} must be an object of class {kind.__name__}, got {got}")


def require_function(name: str, function: object, what: str) -> None:
    """Require something callable; `what` says what it is a function of, with an example."""
    if not callable(function):
        raise TypeError(f"{name} must be a function {what}, got {function!r}")


def require_token_ids(token_ids: Tensor, name: str = "token_ids") -> None:
    """Require integers of shape (batch, seq), with at least one token."""
    if not isinstance(token_ids, Tensor):
        raise TypeError(
            f"{name} must be a tensor, got {type(token_ids).__name__}; "
            "make one with Vocabulary.encode_batch(sentences)"
        )
    shape = tuple(token_ids.shape)
    if token_ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be int64, got {token_ids.dtype} of shape {shape}")
    if token_ids.ndim != 2:
        hint = f"; add the batch axis with {name}[None]" if token_ids.ndim == 1 else ""
        raise ValueError(f"{name} must have shape (batch, seq), got {shape}{hint}")
    if shape[1] == 0:
        raise ValueError(f"{name} is an empty sequence, shape {shape}; it needs a token")


def require_vectors(name: str, x: Tensor, axes: str, *, last: int | None = None) -> None:
    """Require floating-point numbers with the axes named in `axes`, one vector or more, not empty.

    Args:
        name: what the error calls the argument.
        x: the argument.
        axes: names separated by spaces, such as "batch seq d_model"; "..." in front allows more.
        last: the size of the last axis, where it is known.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(x).__name__}; try torch.tensor(...)")
    shape, names = tuple(x.shape), axes.removeprefix("... ").split()
    if x.ndim < len(names) or (x.ndim > len(names) and not axes.startswith("...")):
        missing_batch = x.ndim == len(names) - 1 and names[0] == "batch"
        hint = f"; add the batch axis with {name}[None]" if missing_batch else ""
        expected = axes.replace(" ", ", ")
        raise ValueError(
            f"{name} must have shape ({expected}), got {x.ndim} dimensions: {shape}{hint}"
        )
    if not x.is_floating_point():
        raise TypeError(
            f"{name} must hold floating-point numbers, got {x.dtype} of shape {shape}; "
            f"embed token ids with TokenEmbedding, convert other integers with {name}.float()"
        )
    if shape[-2] == 0:
        raise ValueError(
            f"{name} is an empty sequence: axis {names[-2]} of {shape} has size 0; "
            "attention needs at least one token"
        )
    if shape[-1] == 0:
        raise ValueError(f"the vectors of {name} are empty: {names[-1]} is 0 in shape {shape}")
    if last is not None and shape[-1] != last:
        raise ValueError(
            f"the last axis of {name} must be {names[-1]}={last}, got {shape[-1]} in shape {shape}"
        )


def require_vector(name: str, x: Tensor, axis: str) -> None:
    """Require floating-point numbers along one axis, one or more."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(x).__name__}; try torch.tensor(...)")
    if x.ndim != 1 or not len(x) or not x.is_floating_point():
        raise ValueError(
            f"{name} must hold floating-point numbers of shape ({axis},), "
            f"got {x.dtype} of shape {tuple(x.shape)}"
        )


def require_shape(name: str, x: Tensor, shape: tuple[int, ...], axes: str) -> None:
    """Require exactly this shape: a size of 1 would broadcast the same numbers to every head."""
    if x.shape != shape:
        raise ValueError(
            f"{name} must have shape ({axes.replace(' ', ', ')}) = {tuple(shape)}, "
            f"got {tuple(x.shape)}"
        )


def require_same_sequences(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Require one value for each key, and one batch and dtype for queries, keys and values."""
    for name, x in (("key", key), ("value", value)):
        require_dtype(name, x, "query", query.dtype)
        if x.shape[:-2] != query.shape[:-2]:
            raise ValueError(
                f"query and {name} must agree in every axis before the last two (the batch), "
                f"got query {tuple(query.shape)} and {name} {tuple(x.shape)}"
            )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            "key and value must have the same length, one value for each key, "
            f"got key {tuple(key.shape)} and value {tuple(value.shape)}"
        )


def require_dtype(name: str, x: Tensor, owner: str, dtype: torch.dtype) -> None:
    """Require the dtype that `owner` has; under autocast, torch converts what differs."""
    if x.dtype != dtype and autocast_dtype(x) is None:
        raise TypeError(
            f"{name} is {x.dtype} and {owner} {dtype}; "
            f"convert one of them, as with {name}.to({dtype})"
        )


def require_dtype_of(module: nn.Module, **inputs: Tensor) -> None:
    """Require inputs of the dtype of the module's parameters."""
    parameter = next(module.parameters(), None)  # quantised layers have none
    if parameter is not None:
        owner = f"the parameters of {type(module).__name__} are"
        for name, x in inputs.items():
            require_dtype(name, x, owner, parameter.dtype)


def require_mask(mask: Tensor, scores: tuple[int, ...], name: str = "mask") -> None:
    """Require a boolean mask that broadcasts to the shape of the scores.

    A mask has the two axes (query, key), or the same number of axes as the scores. Three axes
    against four are refused, because (batch, query, key) would broadcast with its batch axis taken
    for heads, and nobody would notice where both have the same size. A single axis is refused too,
    because it may be meant for queries or for keys.
    """
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name} must be a boolean tensor or None, got {type(mask).__name__}")
    shape = tuple(mask.shape)
    if mask.dtype != torch.bool:
        raise TypeError(
            f"{name} must be boolean, True = may attend, got {mask.dtype} of shape {shape}; "
            f"from ones and zeros write {name} == 1, from an additive 0 and "
            f"-inf write {name} == 0"
        )
    four = len(scores) == 4
    expected = f"{'(batch, heads, query, key)' if four else 'the scores'} = {scores}"
    if mask.ndim < 2:
        raise ValueError(
            f"{name} has {mask.ndim} axes, {shape}, and must have at least (query, key) to "
            f"broadcast to {expected}; write {name}[None] for one that is the same for all queries"
        )
    if 2 < mask.ndim < len(scores):
        hint = f"{name}[:, None] for one mask per sentence, {name}[None] for one per head"
        raise ValueError(
            f"{name} has {mask.ndim} axes, {shape}, and must have 2 or {len(scores)} to broadcast "
            f"to {expected}; say which axis is missing: {hint if four else f'{name}[:, None]'}"
        )
    sizes = zip(reversed(shape), reversed(scores), strict=False)
    if mask.ndim > len(scores) or any(size not in (1, score) for size, score in sizes):
        per_key = four and shape == (scores[0], scores[3])
        way_out = f"; for a padding mask (batch, key) write {name}[:, None, None, :]"
        hint = way_out if per_key else ""
        if len(scores) == 3 and mask.ndim == 4:
            hint = f"; without an axis of heads, as padding_mask makes it, take {name}[:, 0]"
        raise ValueError(f"{name} of shape {shape} does not broadcast to {expected}{hint}")


def require_padding_mask(mask: Tensor, scores: tuple[int, ...], mechanism: str) -> None:
    """Require a mask that is the same for all queries, as `mechanism` needs it."""
    require_mask(mask, scores)
    if mask.shape[-2] != 1:
        raise ValueError(
            f"{mechanism} can leave out keys for all queries alike, not for single queries: mask "
            f"must have size 1 on its query axis, as padding_mask makes it, got {tuple(mask.shape)}"
        )


def require_sequences(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, kept: int = 0
) -> None:
    """Require what a multi-head module takes: three (batch, seq, d_model), and a mask that fits.

    The mask also has a column for each of the keys that a cache has `kept`.
    """
    require_vectors("query", query, "batch query d_model", last=module.d_model)
    require_vectors("key", key, "batch key d_model", last=module.d_model)
    require_vectors("value", value, "batch key d_model", last=module.d_model)
    require_same_sequences(query, key, value)
    require_dtype_of(module, query=query)
    if mask is not None:
        n_keys = kept + key.shape[1]
        require_mask(mask, (query.shape[0], module.n_heads, query.shape[1], n_keys))


def require_heads(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    batch: str = "batch heads",
) -> None:
    """Require what dot-product attention takes: query, key and value per head, a mask that fits.

    `batch` names the axes before the last two; "..." allows any.
    """
    require_vectors("query", query, f"{batch} query d_key")
    require_vectors("key", key, f"{batch} key d_key", last=query.shape[-1])
    require_vectors("value", value, f"{batch} key d_value")
    require_same_sequences(query, key, value)
    if mask is not None:
        require_mask(mask, (*query.shape[:-1], key.shape[-2]))


def can_be_read(x: Tensor) -> bool:
    """Whether reading values neither waits for an accelerator nor cuts a compiled graph in two."""
    return x.is_cpu and x.numel() > 0 and not torch.compiler.is_compiling()
