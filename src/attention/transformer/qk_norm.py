"""QK normalisation: queries and keys are all brought to one length before their dot product.

As a model trains, its queries and keys may grow, and with them the scores, until softmax gives one
key everything and hardly any gradient comes back. With normalised queries and keys the scores have
a bound, and training stays stable at a higher learning rate.

The literature uses several norms for this step. Henry et al. 2020 divide by the L2 norm and
multiply the cosines by one learned number instead of 1/√d_key. Dehghani et al. 2023 apply layer
norm, in vision transformers of up to 22 billion parameters: without it, training diverged at about
8 billion. Wortsman et al. 2023 study it in small models. `QKNorm` applies RMSNorm (Zhang and
Sennrich 2019), which is layer norm without the mean and the bias, over each head's d_key
components, as the language models Qwen3 and Gemma 3 do.
"""

from jaxtyping import Float
from torch import Tensor, nn

from attention.arguments import require_dtype_of, require_finite, require_size, require_vectors


class QKNorm(nn.Module):
    """RMSNorm of every query and every key over its d_key components.

    Give it to `DotProduct` as its transform. The gains start at 1. With these gains, every query
    and key has the length √d_key, and a scaled score lies between −√d_key and √d_key.

    Parameters by name: `q_norm.weight` and `k_norm.weight` (d_key), a gain for each component of
    the queries and one for each component of the keys, shared by all heads.

    Args:
        d_key: the width of a head.
        eps: what is added to the mean of the squares, 1e-6 in Qwen3 and Gemma 3. It is one number
            for all dtypes, because torch's default follows the dtype and outweighs short vectors in
            half precision.

    Raises:
        TypeError, ValueError: for an eps that is not a number of at least 0.

    Source:
        Dehghani et al. 2023 and Wortsman et al. 2023, with layer norm; Zhang and Sennrich 2019 for
        RMSNorm.

    Example:
        >>> import torch
        >>> from attention import QKNorm
        >>> q, k = QKNorm(d_key=4)(100 * torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4))
        >>> torch.allclose(q.norm(dim=-1), torch.tensor(2.0))  # √d_key
        True
    """

    def __init__(self, d_key: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        require_size("d_key", d_key)
        require_finite("eps", eps)
        if eps < 0.0:
            raise ValueError(f"eps must be at least 0, got {eps}")
        self.d_key = d_key
        self.q_norm, self.k_norm = nn.RMSNorm(d_key, eps=eps), nn.RMSNorm(d_key, eps=eps)

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        *,
        first: int = 0,
    ) -> tuple[Float[Tensor, "batch heads query d_key"], Float[Tensor, "batch kv_heads key d_key"]]:
        """Normalise every query and every key.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key).
            first: changes nothing, because a length does not depend on the position.

        Raises:
            ValueError: q or k is not d_key wide.
            TypeError: q or k does not have the dtype of the gains.
        """
        require_vectors("q", q, "batch heads query d_key", last=self.d_key)
        require_vectors("k", k, "batch heads key d_key", last=self.d_key)
        require_size("first", first, least=0)
        require_dtype_of(self, q=q, k=k)
        # Where autocast normalises in float32, a cache still gets keys in the dtype of its values.
        return self.q_norm(q).to(q.dtype), self.k_norm(k).to(k.dtype)


class QKSequential(nn.Sequential):
    """nn.Sequential for modules that map q and k: each takes what the previous one returns.

    Normalise first, then rotate: `QKSequential(QKNorm(d_key), Rotary(d_key))`. In the other order,
    each component's gain would be applied to components that were already rotated, and the scores
    would depend on the positions themselves and no longer only on the distance.

    Example:
        >>> import torch
        >>> from attention import EncoderLayer, QKNorm, QKSequential, Rotary
        >>> layer = EncoderLayer(d_model=8, n_heads=2, d_ff=32)
        >>> both = QKSequential(QKNorm(d_key=4), Rotary(d_key=4))
        >>> layer.self_attention.attend.transform = both
        >>> layer(torch.randn(1, 3, 8))[0].shape
        torch.Size([1, 3, 8])
    """

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        *,
        first: int = 0,
    ) -> tuple[Float[Tensor, "batch heads query d_key"], Float[Tensor, "batch kv_heads key d_key"]]:
        """Pass q and k through every module, in order.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key).
            first: the position of the first key, which every module gets where it is not 0.
        """
        require_size("first", first, least=0)
        options = {"first": first} if first else {}  # without a cache it need not be known
        for module in self:
            q, k = module(q, k, **options)
        return q, k
