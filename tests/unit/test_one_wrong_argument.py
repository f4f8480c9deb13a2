"""One argument wrong at a time, in every public function, class and method.

It is refused in the book's own words, which name an argument, and no argument is changed. What is
accepted must be as good as what it replaces: an axis that nothing else has, or a row of `AS_GOOD`.

Left out: flags, which Python reads as true or false whatever they are; `device` and `generator`,
which torch checks and names; values of tensors, which no check reads (`attention.arguments`).
"""

import inspect
import itertools
import linecache
import math
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attention
from tests.unit.valid_calls import CALLS, Call, annotations, array, axes, tensor

OURS = str(Path(attention.__file__).parent)
pytestmark = pytest.mark.usefixtures("as_a_reader")

TORCH_CHECKS = ("device", "generator")
STRANGE = {"None": None, "str": "x", "bytes": b"x", "list": [], "dict": {}, "complex": 1j}
STRANGE |= {"object": object(), "nan": math.nan, "True": True, "vector": torch.ones(3)}
NUMBERS = {"2.5": 2.5, "2.0": 2.0, "inf": math.inf, "0": 0, "-1": -1, "set": {1}}
FINITE = ("2.5", "2.0", "float64", "0", "-1")  # what a float may be, where its domain has it
NUMBERS |= {"tensor": torch.tensor(2), "float64": np.float64(2)}


# What is as good as the argument that it replaces, beside an axis that nothing else has.
LISTS = {"list", "dict", "iterator", "strs"}
POSITIONS = {"list", "dict", "set", "iterator"}
DOUBLE = {"torch.float64"}
APART = {"axis 0: 0", "axis 0: 1", "axis 0: 3"}
RANDOM = (
    "fourier_features",
    "positive_features",
    "performer_attention",
    "random_feature_attention",
)
WRITERS = itertools.product(("Bahdanau", "Luong"), ("start", "end"))
TRANSFORMS = ("QKNorm", "QKSequential")
AS_GOOD = {
    **{key: {"str", *LISTS} for key in ("Vocabulary, sentences", "Vocabulary.encode, sentence")},
    **{
        key: {"strs"}
        for key in ("Vocabulary.encode_batch, sentences", "running_example, sentences")
    },
    **dict.fromkeys(("global_mask, global_tokens", "sparse_attention, global_tokens"), POSITIONS),
    "Vocabulary.decode, ids": POSITIONS,
    "tokenize, text": {"str"},
    # No rotary key.
    **{
        f"{name}, d_rotary": {"0"}
        for name in ("LatentAttention", "LatentCache", "cost.latent", "cost.latent_step")
    },
    # No window, no sinks: a pattern without them.
    **{
        key: {"0"} for key in ("RollingCache, n_sinks", "sink_mask, n_sinks", "cost.sinks, n_sinks")
    },
    **{key: {"0"} for key in ("RollingCache, window", "sink_mask, window")},
    **{key: {"0"} for key in ("sliding_window_mask, window", "sparse_attention, window")},
    # An id that exists.
    **{
        key: {"0", "tensor"}
        for key in (f"{who}Decoder.greedy, start_id" for who in ("Bahdanau", "Luong"))
    },
    **{
        key: {"0", "tensor"}
        for key in (f"{who}Decoder.greedy, end_id" for who in ("Bahdanau", "Luong"))
    },
    "DecoderOnly.generate, end_id": {"0"},
    # One tensor alone, or one that is converted to the other's dtype.
    **dict.fromkeys(("HeadGate, gate", "split_heads, x", "merge_heads, x"), DOUBLE),
    **dict.fromkeys(("SinusoidalPositionalEncoding.forward, x", "elu_plus_one, x"), DOUBLE),
    **dict.fromkeys((f"{each}_features, x" for each in ("fourier", "positive")), DOUBLE),
    **dict.fromkeys((f"{each}, projection" for each in RANDOM), DOUBLE),
    # Queries and keys apart, each by itself.
    **dict.fromkeys((f"{each}.forward, {x}" for each in TRANSFORMS for x in "qk"), APART),
    **dict.fromkeys((f"Rotary.forward, {x}" for x in "qk"), APART | DOUBLE),
}


def wrong(call: Call, parameter: inspect.Parameter) -> Iterator[tuple[str, Any]]:
    """What the argument must not be, each with a word for it."""
    kinds, given = annotations(parameter), call.arguments[parameter.name]
    if (
        bool in kinds
        or parameter.name in TORCH_CHECKS
        or parameter.kind is parameter.VAR_POSITIONAL
    ):
        return
    optional = {"None"} if type(None) in kinds else set()
    if array(parameter) and not isinstance(given, list):
        given = tensor(array(parameter)) if given is None else given
        yield from wrong_tensors(given)
        others = STRANGE | {"float": 1.0, "nested": [[1.0]], "numpy": np.zeros((2, 3))}
        others.pop("vector")
    elif {int, float} & set(kinds) and not isinstance(given, list):
        others = STRANGE | NUMBERS
        if given in (0, 0.0):
            others.pop("0")
        if float in kinds:  # any finite number; -1 and 0 where they are in the domain
            others = {k: v for k, v in others.items() if k not in FINITE}
    else:
        others = STRANGE | {"set": {1, 2}, "5": 5, "iterator": iter([2.5]), "strs": ["a", "9"]}
        others |= {"nested": [[1]], "none in": [None], "bytes in": [b"a"], "ints": [1, 2.5]}
        others |= {"far": [10**6], "behind": [-1], "bools": [True], "0-d": torch.tensor(1)}
    yield from ((word, x) for word, x in others.items() if word not in optional)


def wrong_tensors(x: Tensor) -> Iterator[tuple[str, Tensor]]:
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64):
        if dtype != x.dtype:
            yield f"{dtype}", x.to(dtype)
    yield "no axis", x.flatten()[0]
    yield "an axis more", x[None]
    yield "an axis less", x[0]
    for axis, size in enumerate(x.shape):
        for other in {0, 1, size - 1, size + 1} - {size}:
            shape = (*x.shape[:axis], other, *x.shape[axis + 1 :])
            yield f"axis {axis}: {other}", x.new_ones(shape)


def is_free(call: Call, parameter: inspect.Parameter, word: str) -> bool:
    """Whether the axis of this word is no other tensor's, and no size of the module's."""
    names, any_before = axes(array(parameter)), array(parameter).dim_str.startswith("*")
    if not names:  # a mask broadcasts, and features are made of any shape
        return (any_before and "ax" in word) or word in ("axis 1: 1", "an axis more")
    if not word.startswith("axis "):
        return any_before and word == "an axis more"
    name = names[int(word[5])]
    others = [p for p in call.parameters if p is not parameter and array(p)]
    used = {x for p in others if call.arguments[p.name] is not None for x in axes(array(p))}
    return name not in used | call.sizes or f"#{name}" in array(parameter).dim_str.split()


def names_it(call: Call, parameter: inspect.Parameter, word: str, message: str) -> bool:
    """Whether a message names the argument; of two that do not fit, it may name the other."""
    relation = word.startswith("axis ") or word == "torch.float64"
    names = [p.name for p in call.parameters] if relation else [parameter.name]
    return any(re.search(rf"\b{name.removesuffix('s')}s?\b", message) for name in names)


def copies(arguments: dict[str, Any]) -> list[Any]:
    return [x.clone() if isinstance(x, Tensor) else repr(x) for x in arguments.values()]


def unchanged(arguments: dict[str, Any], before: list[Any]) -> bool:
    now = zip(copies(arguments), before, strict=True)
    return all(torch.equal(x, y) if isinstance(x, Tensor) else x == y for x, y in now)


def ours(error: Exception) -> bool:
    """Whether a statement of this package raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    lines = range(last.lineno, (last.end_lineno or last.lineno) + 1)
    raised = any("raise " in linecache.getline(last.filename, line) for line in lines)
    return last.filename.startswith(OURS) and raised


@pytest.mark.parametrize("name", CALLS)
def test_the_call_is_valid(name):
    call = CALLS[name]
    torch.manual_seed(0)
    before = copies(call.arguments)
    call.function(**call.arguments)
    assert unchanged(call.arguments, before)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_wrong_is_refused_by_name(name):
    call, failures = CALLS[name], []
    for parameter in call.parameters:
        as_good = AS_GOOD.get(f"{name}, {parameter.name}", set())
        for word, x in wrong(call, parameter):
            arguments = call.arguments | {parameter.name: x}
            before = copies(arguments)
            try:
                call.function(**arguments)
            except (TypeError, ValueError) as error:
                if not ours(error):
                    failures.append(f"{parameter.name}, {word}: in another's words: {error}")
                if not names_it(call, parameter, word, str(error)):
                    failures.append(f"{parameter.name}, {word}: named otherwise: {error}")
            except Exception as error:
                failures.append(f"{parameter.name}, {word}: {type(error).__name__}: {error}")
            else:
                if word not in as_good and not (
                    array(parameter) and is_free(call, parameter, word)
                ):
                    failures.append(f"{parameter.name}, {word}: accepted; AS_GOOD names what may")
            if not unchanged(arguments, before):
                failures.append(f"{parameter.name}, {word}: changed an argument")
    assert not failures, "\n".join(failures)
