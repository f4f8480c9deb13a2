"""Folders in Hugging Face's form, made here, against the formulas in that form's own names."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from attention.pretrained import load
from tests.unit.cases import assert_close

LAYERS, VOCAB, D_MODEL, HEADS, KV_HEADS, D_FF, N = 2, 23, 16, 4, 2, 20, 9
LLAMA = {
    "model_type": "llama",
    "vocab_size": VOCAB,
    "hidden_size": D_MODEL,
    "intermediate_size": D_FF,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "eos_token_id": 2,
}
KINDS = {
    "llama": LLAMA,
    "biases": LLAMA | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "wide heads": LLAMA | {"head_dim": 6, "rope_scaling": None},
    "qwen2": LLAMA | {"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 4096},
    "qwen3": LLAMA | {"model_type": "qwen3", "head_dim": 6},
    "mistral": LLAMA | {"model_type": "mistral", "sliding_window": None},
}
GPT2 = {
    "model_type": "gpt2",
    "vocab_size": VOCAB,
    "n_embd": D_MODEL,
    "n_head": HEADS,
    "n_layer": LAYERS,
    "n_positions": 64,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
}


def numbers(shapes):
    rng = torch.Generator().manual_seed(0)
    return {name: torch.randn(shape, generator=rng) / 3 for name, shape in shapes.items()}


def of_llama(config):
    """Weights by their published names, nn.Linear's way."""
    d_key = config.get("head_dim", D_MODEL // HEADS)
    wide, narrow = HEADS * d_key, KV_HEADS * d_key
    biased = "qkv" if config["model_type"] == "qwen2" else ""
    biased = "qkvo" if config.get("attention_bias") else biased
    shapes = {"model.embed_tokens.weight": (VOCAB, D_MODEL), "model.norm.weight": (D_MODEL,)}
    if not config.get("tie_word_embeddings"):
        shapes["lm_head.weight"] = (VOCAB, D_MODEL)
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        for letter, rows in (("q", wide), ("k", narrow), ("v", narrow), ("o", D_MODEL)):
            name = f"{layer}.self_attn.{letter}_proj"
            shapes[f"{name}.weight"] = (rows, wide if letter == "o" else D_MODEL)
            if letter in biased:
                shapes[f"{name}.bias"] = (rows,)
        for part, shape in (("gate", (D_FF, D_MODEL)), ("up", (D_FF, D_MODEL))):
            shapes[f"{layer}.mlp.{part}_proj.weight"] = shape
        shapes[f"{layer}.mlp.down_proj.weight"] = (D_MODEL, D_FF)
        if config.get("mlp_bias"):
            for part, size in (("gate", D_FF), ("up", D_FF), ("down", D_MODEL)):
                shapes[f"{layer}.mlp.{part}_proj.bias"] = (size,)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{layer}.{norm}.weight"] = (D_MODEL,)
        if config["model_type"] == "qwen3":
            for norm in ("q_norm", "k_norm"):
                shapes[f"{layer}.self_attn.{norm}.weight"] = (d_key,)
    return numbers(shapes)


def llama_by_hand(config, w, ids):
    d_key, n = config.get("head_dim", D_MODEL // HEADS), ids.shape[1]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0.0)

    def norm(x, name):
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * w[f"{name}.weight"]

    theta = config["rope_theta"] ** (-torch.arange(0, d_key, 2) / d_key)
    angle = (torch.arange(n)[:, None] * theta).repeat(1, 2)  # (n, d_key): pairs from both halves

    def turned(x):
        a, b = x.chunk(2, -1)
        return x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()

    x = w["model.embed_tokens.weight"][ids]
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        y = norm(x, f"{layer}.input_layernorm")
        q, k, v = (
            linear(y, f"{layer}.self_attn.{p}_proj").unflatten(-1, (-1, d_key)).transpose(1, 2)
            for p in "qkv"
        )
        if config["model_type"] == "qwen3":
            q, k = norm(q, f"{layer}.self_attn.q_norm"), norm(k, f"{layer}.self_attn.k_norm")
        q, k = turned(q), turned(k)
        k, v = (y.repeat_interleave(HEADS // KV_HEADS, 1) for y in (k, v))
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(heads.transpose(1, 2).flatten(-2), f"{layer}.self_attn.o_proj")
        y = norm(x, f"{layer}.post_attention_layernorm")
        gate, up = (linear(y, f"{layer}.mlp.{p}_proj") for p in ("gate", "up"))
        x = x + linear(F.silu(gate) * up, f"{layer}.mlp.down_proj")
    x = norm(x, "model.norm")
    return x @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


def of_gpt2():
    """Weights by their published names, with matrices transposed to nn.Linear's."""
    shapes = {"wte.weight": (VOCAB, D_MODEL), "wpe.weight": (64, D_MODEL)}
    for i in range(LAYERS):
        for part, rows, columns in (
            ("attn.c_attn", D_MODEL, 3 * D_MODEL),
            ("attn.c_proj", D_MODEL, D_MODEL),
            ("mlp.c_fc", D_MODEL, 4 * D_MODEL),
            ("mlp.c_proj", 4 * D_MODEL, D_MODEL),
        ):
            shapes[f"h.{i}.{part}.weight"], shapes[f"h.{i}.{part}.bias"] = (
                (rows, columns),
                (columns,),
            )
        for part in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{part}.{kind}": (D_MODEL,) for kind in ("weight", "bias")}
    return numbers(shapes | {f"ln_f.{kind}": (D_MODEL,) for kind in ("weight", "bias")})


def gpt2_by_hand(w, ids):
    def conv(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def norm(x, name):
        return F.layer_norm(x, (D_MODEL,), w[f"{name}.weight"], w[f"{name}.bias"])

    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    for i in range(LAYERS):
        qkv = conv(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, -1)
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in qkv)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + conv(heads.transpose(1, 2).flatten(-2), f"h.{i}.attn.c_proj")
        hidden = F.gelu(conv(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + conv(hidden, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def store(folder, config, weights, files=1):
    """A folder with these weights in so many files."""
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    names = sorted(weights)
    for i in range(files):
        part = {name: weights[name].contiguous() for name in names[i::files]}
        save_file(part, folder / f"model-{i}.safetensors")
    return folder


IDS = torch.randint(VOCAB, (2, N), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_models_of_llamas_form_equal_the_formulas(kind, files, tmp_path):
    config = KINDS[kind]
    weights = of_llama(config)
    model, tokenizer, end_id = load(store(tmp_path, config, weights, files))
    assert_close(model(IDS)[0], llama_by_hand(config, weights, IDS))
    assert (tokenizer, end_id, model.training) == (None, 2, False)
    assert not any(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_gpt2_equals_the_formulas(prefix, tmp_path):
    weights = of_gpt2()
    stored = {prefix + name: x for name, x in weights.items()}
    stored[f"{prefix}h.0.attn.bias"] = torch.ones(1, 1, 64, 64).tril()  # old files hold a mask
    model = load(store(tmp_path, GPT2, stored)).model
    assert_close(model(IDS)[0], gpt2_by_hand(weights, IDS))


def test_the_dtype_is_the_one_asked_for(tmp_path):
    half = {name: x.bfloat16() for name, x in of_llama(LLAMA).items()}
    folder = store(tmp_path, LLAMA, half)
    kept, made = load(folder, dtype=None).model, load(folder).model
    assert {p.dtype for p in kept.parameters()} == {torch.bfloat16}
    assert {p.dtype for p in made.parameters()} == {torch.float32}


def test_a_tokenizer_in_the_folder_is_read(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "cat": 1}, unk_token="a"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    store(tmp_path, LLAMA, of_llama(LLAMA))
    words.save(str(tmp_path / "tokenizer.json"))
    assert load(tmp_path).tokenizer.encode("cat a").ids == [1, 0]


SCALED = {"rope_theta": 1e4, "rope_type": "yarn", "factor": 4.0, "mscale": 0.7}
REFUSED = {
    "attention to both sides": (
        LLAMA | {"is_causal": False},
        "config.json has is_causal=False, and here it can be True",
    ),
    "something that is false, and unknown": (
        LLAMA | {"some_norm": False},
        "config.json has some_norm=False, which is not built here",
    ),
    "code of its own": (
        LLAMA | {"auto_map": {"AutoModel": "x"}},
        "config.json has auto_map={'AutoModel': 'x'}, which is not built here",
    ),
    "Mistral, and no word of its window": (
        LLAMA | {"model_type": "mistral"},
        "config.json of mistral lacks sliding_window, which then means 4096 keys",
    ),
    "a head that is not the table": (
        LLAMA | {"tie_word_embeddings": True},
        "config.json ties head and embedding, and lm_head.weight is not the embedding's table",
    ),
    "angles without their factor": (
        LLAMA | {"rope_scaling": {"type": "linear"}},
        "config.json has rope_type='linear' and lacks its factor",
    ),
    "a sliding window": (
        LLAMA | {"model_type": "mistral", "sliding_window": 4096},
        "config.json has sliding_window=4096, which is not built here",
    ),
    "a window in some layers": (
        LLAMA | {"model_type": "qwen2", "use_sliding_window": True},
        "config.json has use_sliding_window=True, and here it can be False",
    ),
    "an unknown model": (
        LLAMA | {"model_type": "gemma3"},
        "config.json has model_type='gemma3', and here it can be gpt2, llama, mistral, qwen2, qw",
    ),
    "another activation": (
        LLAMA | {"hidden_act": "gelu"},
        "config.json has hidden_act='gelu', and here it can be 'silu'",
    ),
    "a bias in one place alone": (
        LLAMA | {"attention_bias": True},
        "config.json has attention_bias=True and mlp_bias=False, and here they must agree",
    ),
    "part of a head turned": (
        LLAMA | {"partial_rotary_factor": 0.25},
        "config.json has partial_rotary_factor=0.25, and here it can be 1.0",
    ),
    "angles of another kind": (
        LLAMA | {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
        "config.json has rope_type='dynamic', and here it can be 'default', 'linear', 'llama3' or",
    ),
    "an unknown word of YaRN": (
        LLAMA | {"rope_parameters": SCALED},
        "config.json has mscale=0.7 for rope, which is not built here",
    ),
    "experts": (
        LLAMA | {"num_local_experts": 8},
        "config.json has num_local_experts=8, which is not built here",
    ),
    "a size too few": (
        {name: x for name, x in LLAMA.items() if name != "rms_norm_eps"},
        "config.json lacks rms_norm_eps",
    ),
    "GPT-2 with other scores": (
        GPT2 | {"scale_attn_by_inverse_layer_idx": True},
        "config.json has scale_attn_by_inverse_layer_idx=True, and here it can be False",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_built_here_is_refused_by_name(name, tmp_path):
    config, message = REFUSED[name]
    weights = of_gpt2() if config["model_type"] == "gpt2" else of_llama(LLAMA)
    with pytest.raises(ValueError, match=r"^config\.json ") as raised:
        load(store(tmp_path, config, weights))
    assert str(raised.value).startswith(message)


def test_stored_angles_and_a_copied_head_change_nothing(tmp_path):
    config = LLAMA | {"tie_word_embeddings": True, "is_decoder": False}
    weights = of_llama(config)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(2)
    model = load(store(tmp_path, config, weights)).model
    assert_close(model(IDS)[0], llama_by_hand(config, weights, IDS))


def test_unknown_weights_are_refused(tmp_path):
    weights = of_llama(LLAMA) | {"model.layers.0.mlp.router.weight": torch.ones(2, 2)}
    with pytest.raises(ValueError, match=r"mlp\.router\.weight, which is not built here"):
        load(store(tmp_path, LLAMA, weights))


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="is neither a file nor a folder"):
        load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{}", "utf-8")
    with pytest.raises(FileNotFoundError, match=r"has no weights, which are files named \*.safe"):
        load(tmp_path)
