"""What bad input is told: the argument, what was received, what was expected and the way out.

Every check reads only types and shapes, never a tensor's values, so it costs microseconds, waits for no
accelerator and leaves `torch.compile` its whole graph.
"""

import torch
from torch import Tensor


def check_size(name: str, size: int, *, least: int = 1) -> None:
    """Refuse a size that is not an int of at least `least`."""
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{name} must be an int, got {size!r} of type {type(size).__name__}")
    if size < least:
        raise ValueError(f"{name} must be at least {least}, got {size}")


def check_n_heads(d_model: int, n_heads: int) -> None:
    """Refuse head counts that do not divide d_model, and say which ones do."""
    check_size("d_model", d_model)
    check_size("n_heads", n_heads)
    if d_model % n_heads:
        *others, last = [str(n) for n in range(1, d_model + 1) if d_model % n == 0]
        raise ValueError(
            f"n_heads={n_heads} does not divide d_model={d_model}; "
            f"it can be {', '.join(others)} or {last}"
        )


def check_dropout(dropout: float) -> None:
    """Refuse a dropout that is not a probability."""
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)):
        raise TypeError(
            f"dropout must be a float, got {dropout!r} of type {type(dropout).__name__}"
        )
    if not 0.0 <= dropout <= 1.0:
        raise ValueError(
            f"dropout is a probability between 0 and 1, got {dropout}; 0.1 drops one in ten"
        )


def check_vectors(name: str, x: Tensor, axes: str, *, last: int | None = None) -> None:
    """Refuse `x` unless it is a floating tensor with the axes named in `axes`.

    axes: names separated by spaces, such as "batch seq d_model"; "..." in front admits any number more.
    last: the size of the last axis, where it is known. The axis before it must not be empty.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a tensor, got {type(x).__name__}; use torch.tensor({name})"
        )
    shape, names = tuple(x.shape), axes.removeprefix("... ").split()
    if axes.startswith("..."):
        wrong = x.ndim < len(names)
    else:
        wrong = x.ndim != len(names)
    if wrong:
        hint = f"; add the batch axis with {name}[None]" if x.ndim == len(names) - 1 else ""
        raise ValueError(
            f"{name} must have shape ({axes.replace(' ', ', ')}), "
            f"got {x.ndim} dimensions: {shape}{hint}"
        )
    if not x.is_floating_point():
        raise TypeError(
            f"{name} must hold floating-point vectors, got {x.dtype} of shape {shape}; "
            f"embed token ids with TokenEmbedding, or convert with {name}.float()"
        )
    if shape[-2] == 0:
        raise ValueError(
            f"{name} is an empty sequence: its axis {names[-2]} has size 0 in shape {shape}; "
            "attention needs at least one token"
        )
    if last is not None and shape[-1] != last:
        raise ValueError(
            f"the last axis of {name} must be {names[-1]}={last}, got {shape[-1]} in shape {shape}"
        )


def check_keys_and_values(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Refuse keys and values that do not pair up, or that belong to another batch than the queries."""
    for name, x in (("key", key), ("value", value)):
        if x.shape[:-2] != query.shape[:-2]:
            raise ValueError(
                f"query and {name} must agree in every axis before the last two (the batch): "
                f"got query {tuple(query.shape)} and {name} {tuple(x.shape)}"
            )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            "key and value must have the same length, one value for each key: "
            f"got key {tuple(key.shape)} and value {tuple(value.shape)}"
        )


def check_mask(mask: Tensor, scores: tuple[int, ...]) -> None:
    """Refuse a mask that is not boolean or does not broadcast to the shape of the scores.

    A mask has two axes (query, key), or as many as the scores. Numbers of axes in between are refused:
    (batch, query, key) would broadcast against (batch, heads, query, key) with its batch under heads, and
    raise no error where both happen to have the same size.
    """
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a boolean tensor or None, got {type(mask).__name__}")
    shape = tuple(mask.shape)
    names = "(batch, heads, query, key)" if len(scores) == 4 else "(..., query, key)"
    if mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be boolean, True = may attend, got {mask.dtype} of shape {shape}; "
            "for ones and zeros write mask == 1, for an additive mask of 0 and -inf write mask == 0"
        )
    if 2 < mask.ndim < len(scores):
        raise ValueError(
            f"mask has {mask.ndim} axes {shape}, scores have {len(scores)}: {names} = {scores}; say which axis is "
            "missing: mask[:, None] for one (query, key) mask per sentence, mask[None] for one per head"
        )
    fits = mask.ndim <= len(scores) and all(
        m in (1, s) for m, s in zip(reversed(shape), reversed(scores), strict=False)
    )
    if not fits:
        hint = ""
        if shape == (scores[0], scores[-1]) and len(scores) == 4:
            hint = "; for a padding mask (batch, key) write mask[:, None, None, :]"
        raise ValueError(
            f"mask of shape {shape} does not broadcast to the scores {names} = {scores}{hint}"
        )


def check_token_ids(token_ids: Tensor) -> None:
    """Refuse what is not a tensor of integers of shape (batch, seq) with at least one token."""
    if not isinstance(token_ids, Tensor):
        raise TypeError(
            f"token_ids must be a tensor, got {type(token_ids).__name__}; "
            "make one with Vocabulary.encode_batch(sentences)"
        )
    shape = tuple(token_ids.shape)
    if token_ids.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"token_ids must be int64 ids, got {token_ids.dtype} of shape {shape}")
    if token_ids.ndim != 2:
        hint = "; add the batch axis with token_ids[None]" if token_ids.ndim == 1 else ""
        raise ValueError(f"token_ids must have shape (batch, seq), got {shape}{hint}")
    if shape[1] == 0:
        raise ValueError(f"token_ids is an empty sequence: shape {shape}; it needs a token")
