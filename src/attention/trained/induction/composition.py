"""K-composition: how much of what one head writes is read by another as its keys."""

import torch
from jaxtyping import Float
from torch import Tensor

from attention.arguments import require_size
from attention.multihead import MultiHeadAttention
from attention.trained.induction.model import AttentionOnly


@torch.no_grad()
def k_composition(
    first: MultiHeadAttention, second: MultiHeadAttention
) -> Float[Tensor, "first_heads second_heads"]:
    """How much of what each head of one layer writes is read as keys by each head of a later one.

    A head writes W_OV·x for each x that it looks at, where W_OV = W_O·W_V, and scores a key by
    x_queryᵀ·W_QK·x_key, where W_QK = W_Qᵀ·W_K. The score of a pair is ‖W_QK·W_OV‖ /
    (‖W_QK‖·‖W_OV‖), with Frobenius norms. It is 0 where the later head reads nothing of what the
    earlier one writes, and at most 1. Random matrices have a score too (`random_composition`).

    Args:
        first: the earlier layer. Biases are left out.
        second: the later layer, of the same d_model.

    Returns:
        The scores, (heads of `first`, heads of `second`).

    Raises:
        ValueError: the two differ in d_model.

    Source:
        Elhage et al. 2021, "Three Kinds of Composition" for the kinds, "Analyzing a Two-Layer
        Model" for the number.

    Example:
        >>> from attention.trained.induction import k_composition, load
        >>> model = load(2)
        >>> k_composition(*model.layers).shape
        torch.Size([2, 2])
    """
    if first.d_model != second.d_model:
        raise ValueError(
            f"first and second must have one d_model, got {first.d_model} and {second.d_model}"
        )
    # Rows of w_q, w_k and w_v belong to a head, and columns of w_o: (heads, d_key, d_model).
    w_v, w_o = (w.unflatten(0, (first.n_heads, -1)) for w in (first.w_v.weight, first.w_o.weight.T))
    w_q, w_k = (w.weight.unflatten(0, (second.n_heads, -1)) for w in (second.w_q, second.w_k))
    w_ov, w_qk = w_o.mT @ w_v, w_q.mT @ w_k  # (heads, d_model, d_model)
    product = w_qk[None] @ w_ov[:, None]  # (first_heads, second_heads, d_model, d_model)
    norm = torch.linalg.matrix_norm
    return norm(product) / (norm(w_qk)[None] * norm(w_ov)[:, None])


def random_composition(draws: int = 100) -> tuple[float, float]:
    """The mean and the standard deviation of `k_composition` for layers that were never trained.

    Args:
        draws: how many pairs of new layers, of d_model 32 with 2 heads.

    Source:
        Elhage et al. 2021, "Analyzing a Two-Layer Model", subtract what random matrices give; here
        the layers are drawn as the model's are at its start.

    Example:
        >>> from attention.trained.induction import random_composition
        >>> mean, deviation = random_composition(20)
        >>> 0.1 < mean < 0.3, deviation < 0.02
        (True, True)
    """
    require_size("draws", draws)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        pairs = [AttentionOnly(2).layers for _ in range(draws)]
    scores = torch.stack([k_composition(*pair) for pair in pairs])
    return scores.mean().item(), scores.std().item()
