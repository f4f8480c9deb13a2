"""Models of Llama's form: their settings, and the names of their weights.

Llama, Mistral, Qwen2, Qwen3 and SmolLM2 are one model in different sizes: pre-norm layers with
RMSNorm, grouped queries, rotary positions, and a gated feed-forward layer with SiLU. Qwen2 adds
biases to the projections of queries, keys and values, and Qwen3 normalises each head's queries and
keys.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float64
from torch import Tensor, nn
from torch.nn import functional as F

from attention.dot_product import DotProduct
from attention.positions.rotary import Rotary
from attention.transformer.decoder_only import DecoderOnly
from attention.transformer.qk_norm import QKNorm, QKSequential

# The names of a layer's parts in checkpoints of Hugging Face's form, and here.
PARTS = {
    "self_attn.q_proj": "self_attention.w_q",
    "self_attn.k_proj": "self_attention.w_k",
    "self_attn.v_proj": "self_attention.w_v",
    "self_attn.o_proj": "self_attention.w_o",
    "self_attn.q_norm": "self_attention.attend.transform.0.q_norm",
    "self_attn.k_norm": "self_attention.attend.transform.0.k_norm",
    "input_layernorm": "self_attention_norm",
    "post_attention_layernorm": "feed_forward_norm",
    "mlp.gate_proj": "feed_forward.w_1",
    "mlp.up_proj": "feed_forward.w_3",
    "mlp.down_proj": "feed_forward.w_2",
}


@dataclass(frozen=True)
class Llama:
    """What a configuration says about a model of Llama's form, in the names of this package."""

    vocab_size: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_key: int
    d_ff: int
    n_layers: int
    eps: float
    base: float
    tied: bool
    bias: bool | str = False
    qk_norm: bool = False
    angles: Callable[[Float64[Tensor, " pairs"]], Float64[Tensor, " pairs"]] | None = None
    length: float = 1.0

    def build(self, weights: dict[str, Tensor]) -> DecoderOnly:
        """The model with these weights, given by this package's names; they are not copied."""
        rotary = Rotary(self.d_key, self.base, angles=self.angles, length=self.length)

        def attend() -> DotProduct:
            if not self.qk_norm:
                return DotProduct(transform=rotary)
            return DotProduct(transform=QKSequential(QKNorm(self.d_key, eps=self.eps), rotary))

        with torch.device("meta"):  # so that no numbers are drawn only to be replaced
            model = DecoderOnly(
                self.vocab_size,
                self.d_model,
                self.n_heads,
                self.d_ff,
                n_layers=self.n_layers,
                n_kv_heads=self.n_kv_heads,
                d_key=self.d_key,
                activation=F.silu,
                gated=True,
                norm=partial(nn.RMSNorm, eps=self.eps),
                bias=self.bias,
                tied=self.tied,
                attend=attend,
            )
        model.load_state_dict(weights, assign=True)
        return model


def neighbours(rows: Tensor, n_heads: int) -> Tensor:
    """Rows for rotary pairs from both halves of a head, put into the order of neighbours.

    rows: (heads · d_key, …), a projection's weight or bias, or (d_key,), the gain of a norm.
    """
    return rows.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def from_hugging_face(weights: dict[str, Tensor], settings: Llama) -> dict[str, Tensor]:
    """Weights by the names of this package, with rotary pairs of neighbours."""
    heads = {"w_q": settings.n_heads, "w_k": settings.n_kv_heads, "q_norm": 1, "k_norm": 1}
    ours = {}
    for name, x in weights.items():
        whole = {
            "model.embed_tokens.weight": "embedding.table.weight",
            "model.norm.weight": "norm.weight",
            "lm_head.weight": "head.weight",
        }.get(name)
        if name.startswith("model.layers."):
            _, _, layer, part = name.split(".", 3)
            part, _, kind = part.rpartition(".")
            if part in PARTS:
                whole = f"layers.{layer}.{PARTS[part]}.{kind}"
                n_heads = heads.get(PARTS[part].rpartition(".")[2])
                x = x if n_heads is None else neighbours(x, n_heads)
        if name.endswith("rotary_emb.inv_freq"):  # angles, which follow from base
            continue
        if whole is None:
            raise ValueError(f"the weights have {name}, which is not built here")
        if whole == "head.weight" and settings.tied:
            require_copy(x, weights.get("model.embed_tokens.weight"))
            continue
        ours[whole] = x
    return ours


def require_copy(head: Tensor, table: Tensor | None) -> None:
    """Require that a stored head is the embedding's table, where the configuration ties them."""
    if table is None or not torch.equal(head, table):
        raise ValueError(
            "config.json ties head and embedding, and lm_head.weight is not the embedding's table"
        )
