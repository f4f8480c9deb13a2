"""How large the cache of a well-known model is.

`MODELS` names decoders of the four kinds: multi-head, multi-query, grouped-query and latent
attention. A layer keeps 2 · n_kv_heads · d_key numbers for each token. With latent attention it
keeps d_latent + d_rotary instead: the latent row, and the key that carries the positions for all
heads. A model keeps this in each of its layers. It reads all of this for every token that it
writes, and holds it for every sequence that it writes at the same time.

The sizes are counted in numbers. How many bytes a number takes depends on the program that runs the
model: 2 in float16 and bfloat16, fewer where a cache is quantised.
"""

from typing import NamedTuple

from attention.arguments import require_size


class CacheSizes(NamedTuple):
    """What decides how large a model's cache is, and where that was read.

    Attributes:
        layers: how many layers have a cache.
        n_heads: how many query heads a layer has. The cache does not depend on it.
        n_kv_heads: how many KV heads are kept; none with latent attention.
        d_key: the width of a head.
        source: the paper, and the model's published configuration.
        d_latent: the width of the latent row.
        d_rotary: the width of the rotary key that is kept beside the latent row.
        window: how many tokens are kept at most, where each token sees only a window of the past.
        beside: the model's layers of another kind, where it has two kinds.
    """

    layers: int
    n_heads: int
    n_kv_heads: int
    d_key: int
    source: str
    d_latent: int = 0
    d_rotary: int = 0
    window: int | None = None
    beside: "CacheSizes | None" = None

    @property
    def numbers(self) -> int:
        """How many numbers one layer keeps for one token."""
        return 2 * self.n_kv_heads * self.d_key + self.d_latent + self.d_rotary

    @property
    def kinds(self) -> tuple["CacheSizes", ...]:
        """The model's kinds of layers, each with its own sizes."""
        return (self, *(self.beside.kinds if self.beside else ()))

    def kept(self, length: int) -> int:
        """The number of tokens of a text for which a layer keeps something."""
        return length if self.window is None else min(length, self.window)


MODELS = {
    "GPT-2": CacheSizes(
        layers=12,
        n_heads=12,
        n_kv_heads=12,
        d_key=64,
        source="Radford et al. 2019, table 2; github.com/openai/gpt-2, src/model.py",
    ),
    "GPT-2 XL": CacheSizes(
        layers=48,
        n_heads=25,
        n_kv_heads=25,
        d_key=64,
        source="Radford et al. 2019, table 2; huggingface.co/openai-community/gpt2-xl, config.json",
    ),
    "Llama 2 7B": CacheSizes(
        layers=32,
        n_heads=32,
        n_kv_heads=32,
        d_key=128,
        source="Touvron et al. 2023 (Llama 2); huggingface.co/meta-llama/Llama-2-7b-hf, "
        "config.json",
    ),
    # Its configuration gives 71 for the heads of keys, but it also says that the attention is
    # multi-query, and that is what counts.
    "Falcon 7B": CacheSizes(
        layers=32,
        n_heads=71,
        n_kv_heads=1,
        d_key=64,
        source="Almazrouei et al. 2023; huggingface.co/tiiuae/falcon-7b, config.json",
    ),
    "Llama 2 70B": CacheSizes(
        layers=80,
        n_heads=64,
        n_kv_heads=8,
        d_key=128,
        source="Touvron et al. 2023 (Llama 2); huggingface.co/meta-llama/Llama-2-70b-hf, "
        "config.json",
    ),
    "Mistral 7B": CacheSizes(
        layers=32,
        n_heads=32,
        n_kv_heads=8,
        d_key=128,
        source="Jiang et al. 2023, table 1; huggingface.co/mistralai/Mistral-7B-v0.1, config.json",
        window=4096,
    ),
    "Llama 3 8B": CacheSizes(
        layers=32,
        n_heads=32,
        n_kv_heads=8,
        d_key=128,
        source="Dubey et al. 2024, table 3; huggingface.co/meta-llama/Meta-Llama-3-8B, config.json",
    ),
    "DeepSeek-V2": CacheSizes(
        layers=60,
        n_heads=128,
        n_kv_heads=0,
        d_key=128,
        source="Liu et al. 2024 (DeepSeek-V2), §3.1.2; github.com/deepseek-ai/DeepSeek-V3, "
        "config_236B.json",
        d_latent=512,
        d_rotary=64,
    ),
    "Qwen3 32B": CacheSizes(
        layers=64,
        n_heads=64,
        n_kv_heads=8,
        d_key=128,
        source="Yang et al. 2025 (Qwen3), table 1; huggingface.co/Qwen/Qwen3-32B, config.json",
    ),
    "MiniMax-M2": CacheSizes(
        layers=62,
        n_heads=48,
        n_kv_heads=8,
        d_key=128,
        source="MiniMax 2026 (MiniMax-M2); huggingface.co/MiniMaxAI/MiniMax-M2, config.json",
    ),
    # Its layers over all tokens make the value from the key's projection, before the key's norm and
    # rotation. Programs keep both, so both are counted.
    "Gemma 4 31B": CacheSizes(
        layers=10,
        n_heads=32,
        n_kv_heads=4,
        d_key=512,
        source="released in 2026; huggingface.co/google/gemma-4-31B-it, config.json",
        beside=CacheSizes(
            layers=50,
            n_heads=32,
            n_kv_heads=16,
            d_key=256,
            source="released in 2026; huggingface.co/google/gemma-4-31B-it, config.json",
            window=1024,
        ),
    ),
}


def cache_bytes(model: CacheSizes, length: int = 1, *, bytes_per_number: int = 2) -> int:
    """How many bytes the cache of a model takes for one sequence.

    Args:
        model: one of `MODELS`, or sizes of your own.
        length: how many tokens the sequence has; one unless given, for the bytes per token. A model
            with a window keeps no more tokens than its window has.
        bytes_per_number: 2 for float16 and bfloat16.

    Returns:
        layers · numbers · length · bytes_per_number, added up over the kinds of layers.

    Raises:
        ValueError, TypeError: for a length or bytes_per_number that is not a whole number above 0.

    Source:
        Shazeer 2019, §3, Ainslie et al. 2023, §2.2, and Liu et al. 2024 (DeepSeek-V2), table 1,
        for what a layer keeps; Jiang et al. 2023, §2, for the window.

    Example:
        >>> from attention.cost.caches import MODELS, cache_bytes
        >>> for name, model in MODELS.items():
        ...     print(f"{name:<11} {cache_bytes(model) / 2**10:5} KiB per token")
        GPT-2        36.0 KiB per token
        GPT-2 XL    300.0 KiB per token
        Llama 2 7B  512.0 KiB per token
        Falcon 7B     8.0 KiB per token
        Llama 2 70B 320.0 KiB per token
        Mistral 7B  128.0 KiB per token
        Llama 3 8B  128.0 KiB per token
        DeepSeek-V2  67.5 KiB per token
        Qwen3 32B   256.0 KiB per token
        MiniMax-M2  248.0 KiB per token
        Gemma 4 31B 880.0 KiB per token
        >>> cache_bytes(MODELS["Llama 2 7B"], 4096) / 2**30  # GiB
        2.0
        >>> model = MODELS["Gemma 4 31B"]  # beyond its window ten of the sixty layers grow
        >>> (cache_bytes(model, 1025) - cache_bytes(model, 1024)) / 2**10
        80.0
    """
    require_size("length", length)
    require_size("bytes_per_number", bytes_per_number)
    numbers = sum(kind.layers * kind.numbers * kind.kept(length) for kind in model.kinds)
    return numbers * bytes_per_number
