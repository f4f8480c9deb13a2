"""A pre-norm encoder with some of its parts taken away, to see what each of them does.

Each sublayer of a layer makes x + Sublayer(LayerNorm(x)). Without the residual connection,
Sublayer(LayerNorm(x)) is left; without layer norm, x + Sublayer(x) is left; and without the
sublayer itself, x stays as it came. The weights that remain are the same.
"""

import copy
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention.transformer.encoder import Encoder, EncoderLayer

PARTS = ("residual", "layer norm", "attention", "feed-forward")


def without_parts(model: nn.Module, *parts: str) -> nn.Module:
    """Copy a model, and take parts away from every layer of its encoder.

    Args:
        model: an `Encoder` with norm_first=True, or a model that has one. It stays as it is.
        parts: some of `PARTS`. Without layer norm, the encoder's last norm goes too.

    Returns:
        The copy. Its layers still hold the weights that it no longer uses. Without attention it has
        no attention weights to return: call it with need_weights=False.

    Raises:
        ValueError: there is no such part, or no encoder with norm_first=True.

    Source:
        This book's own; Dong et al. 2021 take the same parts away.

    Example:
        >>> import torch
        >>> from attention import Encoder
        >>> from attention.trained.without_parts import without_parts
        >>> encoder = Encoder(d_model=8, n_heads=2, d_ff=32, norm_first=True)
        >>> x, empty = torch.randn(1, 3, 8), without_parts(encoder, "attention", "feed-forward")
        >>> output, _ = empty(x, need_weights=False)
        >>> torch.equal(output, encoder.norm(x))  # nothing but the last norm is left
        True
    """
    for part in parts:
        if part not in PARTS:
            raise ValueError(f"parts must be among {', '.join(map(repr, PARTS))}, got {part!r}")
    model = copy.deepcopy(model)
    for encoder in encoders(model):
        for layer in encoder.layers:
            layer.residual = partial(reduced, layer, parts)
        if "layer norm" in parts:
            encoder.norm = nn.Identity()
    return model


def reduced(
    layer: EncoderLayer,
    parts: tuple[str, ...],
    x: Tensor,
    sublayer: Callable[[Tensor], tuple[Tensor, Tensor | None]],
    norm: nn.Module,
) -> tuple[Tensor, Tensor | None]:
    """`ResidualLayer.residual` in pre-norm order, without some of its parts."""
    name = "attention" if norm is layer.self_attention_norm else "feed-forward"
    if name in parts:
        return x, None
    output, weights = sublayer(x if "layer norm" in parts else norm(x))
    output = layer.dropout(output)
    return output if "residual" in parts else x + output, weights


@torch.no_grad()
def rows_by_sublayer(
    encoder: Encoder, x: Float[Tensor, "batch seq d_model"]
) -> list[Float[Tensor, "batch seq d_model"]]:
    """Compute the rows that each sublayer leaves: attention, feed-forward, attention and so on.

    Args:
        encoder: whole, or as `without_parts` returns it.
        x: (batch, seq, d_model), what goes into it, without padding.

    Returns:
        x itself, and the rows (batch, seq, d_model) after each sublayer, before the last norm.

    Example:
        >>> import torch
        >>> from attention import Encoder
        >>> from attention.trained.without_parts import rows_by_sublayer
        >>> encoder, x = Encoder(d_model=8, n_heads=2, d_ff=32, n_layers=3), torch.randn(1, 4, 8)
        >>> rows = rows_by_sublayer(encoder, x)
        >>> len(rows), torch.equal(rows[-1], encoder(x)[0])
        (7, True)
    """
    rows = [x]
    for layer in encoder.layers:
        watched = copy.copy(layer)  # shares the weights
        watched.residual = partial(recorded, layer.residual, rows)
        x, _ = watched(x)
    return rows


def recorded(step: Callable, rows: list[Tensor], *inputs) -> tuple[Tensor, Tensor | None]:
    """A residual step that notes the rows it makes."""
    x, weights = step(*inputs)
    rows.append(x)
    return x, weights


@torch.no_grad()
def spread(x: Float[Tensor, "... seq d_model"]) -> Float[Tensor, "..."]:
    """How far the rows are from their mean, as a share of their size.

    0 means that all rows are the same, and 1 means that their mean is 0.

    Args:
        x: rows, (..., seq, d_model), not all of them 0.

    Source:
        Dong et al. 2021, §2.1: their residual res(X), with the mean instead of the nearest row
        and the Frobenius norm.

    Example:
        >>> import torch
        >>> from attention.trained.without_parts import spread
        >>> spread(torch.tensor([[3.0, 4.0], [3.0, 4.0]])), spread(torch.tensor([[1.0], [-1.0]]))
        (tensor(0.), tensor(1.))
    """
    return (x - x.mean(dim=-2, keepdim=True)).norm(dim=(-2, -1)) / x.norm(dim=(-2, -1))


def encoders(model: nn.Module) -> list[Encoder]:
    found = [each for each in model.modules() if isinstance(each, Encoder)]
    layers = [layer for encoder in found for layer in encoder.layers]
    if not layers or not all(layer.norm_first for layer in layers):
        raise ValueError(
            "model must have an Encoder with norm_first=True, got "
            f"{type(model).__name__} {'with norm_first=False' if layers else 'without one'}"
        )
    return found
