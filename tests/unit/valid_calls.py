"""One valid call of every public function, class and method, made from the names of its arguments.

A tensor's annotation names its axes, and an axis has one size everywhere; a number has one value
for its name everywhere. What needs more than its name says stands in `OWN`.
"""

import inspect
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import torch
from jaxtyping import AbstractArray
from torch import Tensor, nn

import attention as a
from attention.cost import dense, linear, recurrent, sparse


def named(text: str) -> dict[str, int]:
    return {name: int(size) for name, size in (pair.split() for pair in text.split(","))}


AXES = named(
    "batch 2, heads 4, kv_heads 2, query 11, key 11, seq 11, new 3, source 7, target 11,"
    "d_model 24, d_key 6, d_value 6, d_value+1 7, width 6, query_dim 24, key_dim 24, hidden_dim 5,"
    "d_embedding 5, d_latent 5, d_row 7, features 8, proj_len 5, max_length 60, rounds 2, half 2,"
    "blocks 3, block 4, n_keys 9, random 2, n_selected 3, 1 1"
)
NUMBERS = named(
    "batch 2, n_heads 4, n_kv_heads 2, d_model 24, d_ff 16, d_key 6, query_dim 24, key_dim 24,"
    "hidden_dim 5, d_embedding 5, d_latent 5, d_rotary 2, d_query_latent 5, new 3, vocab_size 9,"
    "source_vocab 9, target_vocab 9,"
    "pad_id 0, start_id 1, end_id 2, n_layers 1, n_new 2, max_length 60, proj_len 5, n_features 8,"
    "n_buckets 4, n_rounds 2, chunk_length 4, half_width 2, first_query 0, n_queries 11, n_keys 11,"
    "seq 11, n 11, window 4, n_sinks 1, stride 3, summary 1, n_random 2, n_global 2, block 4,"
    "n_index_heads 2, d_index 5, top_k 4, n_blocks 2, tile 4, chunk 4, kernel_size 3, gates 1"
)
NUMBERS |= {"dropout": 0.0, "scale": 1.0, "least": 0.0, "base": 10_000.0, "eps": 1e-6}


def decoder_layer() -> nn.Module:
    return nn.TransformerDecoderLayer(24, 4, 16, dropout=0.0, batch_first=True)


def encoder_layer() -> nn.Module:
    return nn.TransformerEncoderLayer(24, 4, 16, dropout=0.0, batch_first=True)


OWN: dict[str, dict[str, Any]] = {
    "Decoder.from_torch": {"decoder": nn.TransformerDecoder(decoder_layer(), 1)},
    "DecoderLayer.from_torch": {"layer": decoder_layer()},
    "Encoder.from_torch": {
        "encoder": nn.TransformerEncoder(encoder_layer(), 1, enable_nested_tensor=False)
    },
    "EncoderLayer.from_torch": {"layer": encoder_layer()},
    "FeedForward.from_torch": {"layer": encoder_layer()},
    "pool_kv_heads": {"module": a.MultiHeadAttention(24, 4)},
    "LatentAttention.from_deepseek": {
        "weights": {
            "q_proj.weight": torch.ones(4 * 8, 24),
            "kv_a_proj_with_mqa.weight": torch.ones(5 + 2, 24),
            "kv_a_layernorm.weight": torch.ones(5),
            "kv_b_proj.weight": torch.ones(4 * 12, 5),
            "o_proj.weight": torch.ones(24, 24),
        }
    },
    "DecoderOnly.generate": {"temperature": 1.0},
    "HeadGate": {"attend": a.DotProduct(), "gate": torch.ones(4)},
    "Mechanism": {"function": a.linear_attention},
    "MultiHeadAttention.from_torch": {"module": nn.MultiheadAttention(24, 4, batch_first=True)},
    "PerHeadAttention.from_multi_head": {"module": a.MultiHeadAttention(24, 4)},
    "Vocabulary": {"sentences": ["a cat", "a dog"]},
    "Vocabulary.decode": {"ids": [1, 2]},
    "Vocabulary.encode": {"sentence": "a dog"},
    "Vocabulary.encode_batch": {"sentences": ["a dog", "a cat"], "length": 3},
    "attend_in_blocks": {"listed": torch.arange(9).repeat(3, 1)},
    "compressed_attention": {
        "gate": torch.ones(2, 4, 11, 1),
        "selected": torch.zeros(2, 4, 11, 3, dtype=torch.int64),
    },
    "elu_plus_one": {"x": torch.ones(2, 3)},
    "global_mask": {"global_tokens": [0, 2]},
    "kernel_attention": {"feature_map": a.elu_plus_one},
    "running_example": {"d_model": 8, "n_heads": 2, "sentences": ["the cat saw the dog"]},
    "selected_attention": {"block": 1},
    "sparse_attention": {"global_tokens": [2], "random_keys": None},
    "tokenize": {"text": "A cat."},
}

# What a method that has checked its arguments calls, with arguments that nobody else makes.
TRUSTED = {"attend", "first_state", "positions", "require_encoded", "residual", "step"}
TRUSTED |= {
    "scores",
    "turn",
    "turn_from",
    "turns",
    "turns_up_to",
    "biases",
    "keep",
    "per_head",
    "extra_repr",
    "project",
    "best_keys",
    "write",
    "require_cache_for_each_layer",
}
# What attends in `MultiHeadAttention`, which has checked query, key, value and mask.
INSIDE = {"CompressedAttention", "DotProduct", "HeadGate", "Linformer", "Mechanism", "Performer"}
NO_CALLS = {"RunningExample", "SENTENCES", "TransformerOutput"}  # results, and texts
PARTS = {"of_pairs", "pairs_in_chunks", "with_features"}  # of the counts of others
QK_SEQUENTIAL = (a.QKNorm(6), a.Rotary(6))  # its arguments have no names


class Call(NamedTuple):
    function: Callable[..., Any]
    parameters: list[inspect.Parameter]
    arguments: dict[str, Any]
    sizes: frozenset[str] = frozenset()  # the axes whose size a module has from its constructor


def annotations(parameter: inspect.Parameter) -> list[Any]:
    annotation = parameter.annotation
    union = get_origin(annotation) in (UnionType, Union)
    return list(get_args(annotation)) if union else [annotation]


def array(parameter: inspect.Parameter) -> type[AbstractArray] | None:
    """The tensor that an annotation names, with its axes."""
    kinds = [x for x in annotations(parameter) if inspect.isclass(x)]
    return next((x for x in kinds if issubclass(x, AbstractArray)), None)


def axes(annotation: type[AbstractArray]) -> list[str]:
    """Their names, without `#` for one that may have size 1, and without `*` and `...` for any."""
    names = annotation.dim_str.split()
    return [name.strip("#") for name in names if name != "..." and not name.startswith("*")]


def tensor(annotation: type[AbstractArray]) -> Tensor:
    shape = [AXES[name] for name in axes(annotation)]
    generator = torch.Generator().manual_seed(0)
    if "float32" in annotation.dtypes:
        return torch.randn(shape, generator=generator)
    if "int64" in annotation.dtypes:
        return torch.randint(1, 4, shape, generator=generator)
    return torch.ones(shape or (1, 11), dtype=torch.bool)  # a mask of keys fits everywhere


def argument(call: str, parameter: inspect.Parameter) -> Any:
    name, annotation = parameter.name, array(parameter)
    if name in OWN.get(call, {}):
        return OWN[call][name]
    if annotation is not None and name not in ("state", "projected_key"):
        return tensor(annotation)
    return NUMBERS.get(name, None if parameter.default is parameter.empty else parameter.default)


def call_of(name: str, function: Callable[..., Any], sizes: frozenset[str] = frozenset()) -> Call:
    parameters = [  # options of another class are tried there
        p
        for p in inspect.signature(function).parameters.values()
        if p.name != "self" and p.kind is not p.VAR_KEYWORD
    ]
    return Call(function, parameters, {p.name: argument(name, p) for p in parameters}, sizes)


def methods(name: str, kind: type) -> Iterator[tuple[str, Call]]:
    """Each on an object of its own, so that no call meets what another one left."""
    ours = [vars(c) for c in reversed(kind.__mro__) if c.__module__.startswith("attention")]
    defined = {method: x for members in ours for method, x in members.items()}
    arguments = {} if kind is a.QKSequential else call_of(name, kind).arguments
    for method, x in defined.items():
        inside = name in INSIDE and method == "forward"
        if method.startswith("_") or method in TRUSTED or inside:
            continue
        if isinstance(x, classmethod | staticmethod):
            yield f"{name}.{method}", call_of(f"{name}.{method}", getattr(kind, method))
        elif inspect.isfunction(x):
            call = call_of(f"{name}.{method}", x, frozenset(arguments))

            def function(*, method: str = method, **given: Any) -> Any:
                made = kind(*QK_SEQUENTIAL) if kind is a.QKSequential else kind(**arguments)
                return getattr(made, method)(**given)

            yield f"{name}.{method}", call._replace(function=function)


def all_calls() -> Iterator[tuple[str, Call]]:
    for name in sorted(set(a.__all__) - NO_CALLS):
        thing = getattr(a, name)
        if thing is not a.QKSequential:
            yield name, call_of(name, thing)
        if inspect.isclass(thing):
            yield from methods(name, thing)
    for room in (dense, linear, recurrent, sparse):
        for name, function in vars(room).items():
            own = inspect.isfunction(function) and function.__module__ == room.__name__
            if own and name not in PARTS:
                yield f"cost.{name}", call_of(f"cost.{name}", function)


CALLS = dict(all_calls())
