"""Models from a folder in Hugging Face's form: config.json, model.safetensors, tokenizer.json.

Weights may lie in several files: all that end in .safetensors are read.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from attention.positions.learned import LearnedPositions
from attention.positions.longer import (
    interpolated_angles,
    llama3_angles,
    yarn_angles,
    yarn_length,
)
from attention.pretrained.llama import Llama, from_hugging_face, require_copy
from attention.transformer.decoder_only import DecoderOnly

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# What changes no number of a forward pass.
NO_MATTER = {
    *("architectures", "bos_token_id", "eos_token_id", "pad_token_id", "_name_or_path"),
    *("dtype", "torch_dtype", "initializer_range", "transformers_version", "use_cache"),
    *("attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop", "pretraining_tp"),
    *("is_llama_config", "rope_interleaved", "model_type", "max_window_layers", "n_ctx"),
    *("summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type"),
    *("summary_use_proj", "id2label", "label2id", "chunk_size_feed_forward", "problem_type"),
    *("output_attentions", "output_hidden_states", "return_dict", "task_specific_params"),
    "transformers.js_config",
}
# What a configuration may contain, but is not built here where it is true.
OFF = {"is_decoder", "is_encoder_decoder", "add_cross_attention", "tie_encoder_decoder"}
OFF |= {"torchscript", "use_bfloat16", "tf_legacy_loss", "remove_invalid_values"}


class Config:
    """A configuration of which every entry must be asked for: what is left over is refused."""

    def __init__(self, path: Path) -> None:
        self.entries = json.loads((path / "config.json").read_text("utf-8"))
        self.asked = set(NO_MATTER)

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        value = self.entries.get(name)
        return default if value is None else value

    def __getitem__(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            raise ValueError(f"config.json lacks {name}")
        return value

    def require(self, name: str, *allowed: Any) -> None:
        """Require one of these values, or that the entry is not there."""
        value = self.get(name, allowed[0])
        if value not in allowed:
            can_be = " or ".join(map(repr, allowed))
            raise ValueError(f"config.json has {name}={value!r}, and here it can be {can_be}")

    def require_all_asked(self) -> None:
        """Require that no entry that is set is left over."""
        left = {
            name: value
            for name, value in self.entries.items()
            if name not in self.asked and value is not None and not (value is False and name in OFF)
        }
        if left:
            told = ", ".join(f"{name}={value!r}" for name, value in sorted(left.items()))
            raise ValueError(f"config.json has {told}, which is not built here")


def read_folder(path: Path) -> tuple[DecoderOnly, "Tokenizer | None", int | None]:
    """Model, tokenizer if there is one, and the id of the end token."""
    if not (path / "config.json").exists():
        raise FileNotFoundError(f"{path} has no config.json; is it a folder of a published model?")
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{path} has no weights, which are files named *.safetensors")
    config = Config(path)
    if (kind := config["model_type"]) not in KINDS:
        can_be = ", ".join(sorted(KINDS))
        raise ValueError(f"config.json has model_type={kind!r}, and here it can be {can_be}")
    weights: dict[str, Tensor] = {}
    for file in files:
        weights |= load_file(file)
    config.require("is_causal", True)
    model = KINDS[kind](config, weights)
    end_id = config.get("eos_token_id")
    end_id = end_id[0] if isinstance(end_id, list) else end_id
    return model, tokenizer_in(path), end_id


def tokenizer_in(path: Path) -> "Tokenizer | None":
    if not (path / "tokenizer.json").exists():
        return None
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "reading tokenizer.json takes the package tokenizers: pip install tokenizers"
        ) from None
    return Tokenizer.from_file(str(path / "tokenizer.json"))


def llama(config: Config, weights: dict[str, Tensor]) -> DecoderOnly:
    """Llama and Mistral, Qwen2 and Qwen3."""
    kind, n_heads = config["model_type"], config["num_attention_heads"]
    d_model = config["hidden_size"]
    config.require("hidden_act", "silu")
    config.require("partial_rotary_factor", 1.0)
    config.require("use_sliding_window", False)
    if not config.get("use_sliding_window") and kind.startswith("qwen"):
        config.get("sliding_window")  # said, and not used
    if kind == "mistral" and "sliding_window" not in config.entries:
        raise ValueError("config.json of mistral lacks sliding_window, which then means 4096 keys")
    config.require("layer_types", ["full_attention"] * config["num_hidden_layers"])
    bias = bool(config.get("attention_bias", False))
    if (of_mlp := bool(config.get("mlp_bias", False))) != bias:
        raise ValueError(
            f"config.json has attention_bias={bias} and mlp_bias={of_mlp}, and here they must agree"
        )
    base, angles, length = rotary(config)
    settings = Llama(
        vocab_size=config["vocab_size"],
        d_model=d_model,
        n_heads=n_heads,
        n_kv_heads=config.get("num_key_value_heads", n_heads),
        d_key=config.get("head_dim", d_model // n_heads),
        d_ff=config["intermediate_size"],
        n_layers=config["num_hidden_layers"],
        eps=config["rms_norm_eps"],
        base=base,
        tied=bool(config.get("tie_word_embeddings", False)),
        bias="qkv" if kind == "qwen2" else bias,
        qk_norm=kind == "qwen3",
        angles=angles,
        length=length,
    )
    config.require_all_asked()
    return settings.build(from_hugging_face(weights, settings))


def rotary(config: Config) -> tuple[float, Callable | None, float]:
    """The base of the rotary angles, what changes them, and the length of what they turn.

    Older files have rope_theta and rope_scaling, newer ones rope_parameters with both.
    """
    trained = config["max_position_embeddings"]
    of_scaling, of_rope = config.get("rope_scaling"), config.get("rope_parameters")
    said = dict(of_scaling or of_rope or {})

    def needed(name: str) -> float:
        if said.get(name) is None:
            raise ValueError(f"config.json has rope_type={kind!r} and lacks its {name}")
        return said.pop(name)

    base = float(said.pop("rope_theta", config.get("rope_theta", 10000.0)))
    kind = said.pop("rope_type", said.pop("type", "default"))
    said.pop("type", None)
    angles, length = None, 1.0
    if kind == "linear":
        angles = interpolated_angles(needed("factor"))
    elif kind == "llama3":
        angles = llama3_angles(
            needed("factor"),
            said.pop("original_max_position_embeddings", trained),
            low=needed("low_freq_factor"),
            high=needed("high_freq_factor"),
        )
    elif kind == "yarn":
        factor = needed("factor")
        if said.get("truncate") is True:  # as it is where nothing is said
            del said["truncate"]
        angles = yarn_angles(
            factor,
            said.pop("original_max_position_embeddings", trained),
            base,
            low=said.pop("beta_slow", None) or 1.0,
            high=said.pop("beta_fast", None) or 32.0,
        )
        length = said.pop("attention_factor", None) or yarn_length(factor)
    elif kind != "default":
        raise ValueError(
            f"config.json has rope_type={kind!r}, and here it can be 'default', 'linear', 'llama3' "
            "or 'yarn'"
        )
    partial = said.pop("partial_rotary_factor", None)
    said |= {"partial_rotary_factor": partial} if partial not in (None, 1.0) else {}
    if told := ", ".join(f"{name}={x!r}" for name, x in said.items() if x is not None):
        raise ValueError(f"config.json has {told} for rope, which is not built here")
    return base, angles, length


def gpt2(config: Config, weights: dict[str, Tensor]) -> DecoderOnly:
    """GPT-2: learned positions, layer norm, biases everywhere, a tied head.

    Its matrices are stored transposed to nn.Linear's, and those of q, k and v are stored as one.
    """
    d_model, n_heads = config["n_embd"], config["n_head"]
    config.require("activation_function", "gelu_new")
    config.require("scale_attn_weights", True)
    config.require("scale_attn_by_inverse_layer_idx", False)
    config.require("reorder_and_upcast_attn", False)
    config.require("add_cross_attention", False)
    config.require("tie_word_embeddings", True)
    eps = config.get("layer_norm_epsilon", 1e-5)
    with torch.device("meta"):
        model = DecoderOnly(
            config["vocab_size"],
            d_model,
            n_heads,
            config.get("n_inner", 4 * d_model),
            n_layers=config["n_layer"],
            positions=LearnedPositions(d_model, config["n_positions"]),
            activation=partial(F.gelu, approximate="tanh"),
            norm=partial(nn.LayerNorm, eps=eps),
        )
    config.require_all_asked()
    parts = {
        "attn.c_proj": "self_attention.w_o",
        "ln_1": "self_attention_norm",
        "ln_2": "feed_forward_norm",
        "mlp.c_fc": "feed_forward.w_1",
        "mlp.c_proj": "feed_forward.w_2",
    }
    whole = {"wte.weight": "embedding.table.weight", "wpe.weight": "positions.table"}
    ours = {}
    for name, x in weights.items():
        name = name.removeprefix("transformer.")
        part, _, kind = name.rpartition(".")
        if part.startswith("h."):
            _, layer, part = part.split(".", 2)
            x = x.T if kind == "weight" and x.ndim == 2 else x
            if part == "attn.c_attn":
                for letter, rows in zip("qkv", x.chunk(3), strict=True):
                    ours[f"layers.{layer}.self_attention.w_{letter}.{kind}"] = rows
            elif part in parts:
                ours[f"layers.{layer}.{parts[part]}.{kind}"] = x
            elif part not in ("attn", "attn.masked_bias"):  # a stored causal mask
                raise ValueError(f"the weights have {name}, which is not built here")
        elif part == "ln_f":
            ours[f"norm.{kind}"] = x
        elif name in whole:
            ours[whole[name]] = x
        elif name == "lm_head.weight":
            require_copy(x, weights.get("transformer.wte.weight", weights.get("wte.weight")))
        else:
            raise ValueError(f"the weights have {name}, which is not built here")
    model.load_state_dict({name: x.contiguous() for name, x in ours.items()}, assign=True)
    return model


KINDS = {"llama": llama, "mistral": llama, "qwen2": llama, "qwen3": llama, "gpt2": gpt2}
