"""Models from a GGUF file, llama.cpp's form: settings, tokenizer and weights lie in one file.

The package gguf reads the file and turns its quantised numbers into float32. In the file, as here,
the rows of queries and keys are in the order of neighbouring rotary pairs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from attention.pretrained.llama import Llama
from attention.transformer.decoder_only import DecoderOnly

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The names of a layer's parts in the file, and here.
PARTS = {
    "attn_q": "self_attention.w_q",
    "attn_k": "self_attention.w_k",
    "attn_v": "self_attention.w_v",
    "attn_output": "self_attention.w_o",
    "attn_norm": "self_attention_norm",
    "ffn_norm": "feed_forward_norm",
    "ffn_gate": "feed_forward.w_1",
    "ffn_up": "feed_forward.w_3",
    "ffn_down": "feed_forward.w_2",
}
OTHERS = {"token_embd": "embedding.table", "output_norm": "norm", "output": "head"}

# The architecture's own fields that are known here; any other would change the numbers.
FIELDS = {
    "block_count",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "rope.freq_base",
    "rope.dimension_count",
    "vocab_size",
    "context_length",
}
CONTROL = 3  # the kind of a token that stands for no text, such as the end


def read_gguf(path: Path) -> tuple[DecoderOnly, "Tokenizer", int | None]:
    """Model, tokenizer and the id of the end token."""
    try:
        from gguf import GGUFReader, dequantize
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "reading a GGUF file takes the packages gguf and tokenizers: "
            "pip install gguf tokenizers"
        ) from None
    reader = GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    architecture = fields["general.architecture"]
    if architecture != "llama":
        raise ValueError(
            f"{path.name} has the architecture {architecture!r}; of GGUF files this package reads "
            "'llama', and of others a folder in Hugging Face's form"
        )
    of_model = {
        name.removeprefix("llama."): value
        for name, value in fields.items()
        if name.startswith("llama.")
    }
    if unknown := sorted(of_model.keys() - FIELDS):
        raise ValueError(f"{path.name} sets {', '.join(unknown)}, which is not built here")

    tokenizer = tokenizer_of(fields)  # refused, if it is, before the weights are dequantised
    weights = {}
    for tensor in reader.tensors:
        numbers = dequantize(tensor.data, tensor.tensor_type)
        weights[ours(tensor.name)] = torch.tensor(numbers, dtype=torch.float32)
    settings = settings_of(of_model, len(fields["tokenizer.ggml.tokens"]), weights)
    end_id = fields.get("tokenizer.ggml.eos_token_id")
    return settings.build(weights), tokenizer, end_id


def ours(name: str) -> str:
    """The name of a weight in this package."""
    part, _, kind = name.rpartition(".")
    if part in OTHERS:
        return f"{OTHERS[part]}.{kind}"
    block, _, rest = part.partition(".")
    layer, _, inner = rest.partition(".")
    if block == "blk" and inner in PARTS:
        return f"layers.{layer}.{PARTS[inner]}.{kind}"
    raise ValueError(f"the file has the weights {name}, which are not built here")


def settings_of(of_model: dict[str, Any], vocab_size: int, weights: dict[str, Any]) -> Llama:
    n_heads, d_model = of_model["attention.head_count"], of_model["embedding_length"]
    d_key = of_model.get("attention.key_length", d_model // n_heads)
    for name in ("rope.dimension_count", "attention.value_length"):
        if of_model.get(name, d_key) != d_key:
            raise ValueError(
                f"the file has {name}={of_model[name]} for heads of {d_key}, which is not built "
                "here: all components of a head turn, and values are as wide as keys"
            )
    return Llama(
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        n_kv_heads=of_model.get("attention.head_count_kv", n_heads),
        d_key=d_key,
        d_ff=of_model["feed_forward_length"],
        n_layers=of_model["block_count"],
        eps=of_model["attention.layer_norm_rms_epsilon"],
        base=of_model.get("rope.freq_base", 10000.0),
        tied="head.weight" not in weights,
    )


def tokenizer_of(fields: dict[str, Any]) -> "Tokenizer":
    """The tokenizer that the file describes: byte-level BPE, each digit by itself."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind = fields["tokenizer.ggml.model"], fields.get("tokenizer.ggml.pre")
    if kind != ("gpt2", "smollm"):
        raise ValueError(f"the file has a tokenizer {kind}, and this package knows (gpt2, smollm)")
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == CONTROL
        ]
    )
    return tokenizer
