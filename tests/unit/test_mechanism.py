"""What attends instead of the dot product: any function, in every layer of the transformer."""

import inspect
import re
from functools import partial

import pytest
import torch
from torch import nn

import attention
from attention import (
    DecoderLayer,
    DecoderOnly,
    DotProduct,
    EncoderLayer,
    HeadGate,
    Mechanism,
    MultiHeadAttention,
    Rotary,
    causal_mask,
    linear_attention,
    merge_heads,
    padding_mask,
    performer_attention,
    sliding_window_mask,
    sparse_attention,
    split_heads,
    strided_attention,
    strided_mask,
    tiled_attention,
)
from attention.linear.performer import orthogonal_projection
from tests.unit.cases import assert_close, gradients
from tests.unit.mechanisms import D_MODEL, FUNCTIONS, HEADS, MODULES, SIZES, N

EXACT = {  # and the mask under which dense attention does the same, of 11 tokens
    "tiled": (partial(tiled_attention, tile=4), None),
    "tiled, causal": (partial(tiled_attention, causal=True, tile=4), causal_mask(11)),
    "window": (partial(sparse_attention, window=4, block=4), sliding_window_mask(11, 4)),
    "strided": (partial(strided_attention, stride=3), strided_mask(11, 3)),
}
ESTIMATES = {
    "linear": partial(linear_attention, causal=True),
    "performer": lambda q, k, v, mask: performer_attention(
        q, k, v, orthogonal_projection(16, 4, generator=torch.Generator().manual_seed(0)), mask
    ),
}


@pytest.fixture
def module():
    torch.manual_seed(0)
    return MultiHeadAttention(8, 2).double()


@pytest.fixture
def x():
    rng = torch.Generator().manual_seed(1)
    return torch.randn(3, 11, 8, generator=rng, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_an_exact_one_changes_nothing_but_the_cost(name, padded, module, x):
    function, pattern = EXACT[name]
    unpadded = padding_mask(torch.arange(1, 34).view(3, 11) % 9, 0) if padded else None
    mask = pattern if unpadded is None else unpadded if pattern is None else unpadded & pattern
    inputs = [x, *module.parameters()]
    expected, _ = module(x, mask=mask)
    wanted = gradients([expected], inputs)

    module.attend = Mechanism(function)
    output, weights = module(x, mask=unpadded)
    assert weights is None
    assert_close(output, expected)
    for actual, gradient in zip(gradients([output], inputs), wanted, strict=True):
        torch.testing.assert_close(actual, gradient, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATES)
def test_it_gets_the_heads_and_its_result_is_merged(name, module, x):
    q, k, v = (split_heads(w(x), 2) for w in (module.w_q, module.w_k, module.w_v))
    by_hand = module.w_o(merge_heads(ESTIMATES[name](q, k, v, None)))
    module.attend = Mechanism(ESTIMATES[name])
    assert_close(module(x)[0], by_hand)
    assert_close(module(x, need_weights=False)[0], by_hand)


def test_a_transform_and_a_gate_do_what_they_do_to_the_dot_product(module, x):
    gate = torch.tensor([1.0, 0.0])
    module.attend = HeadGate(DotProduct(transform=Rotary(4)), gate)
    expected, _ = module(x)
    module.attend = HeadGate(Mechanism(tiled_attention, transform=Rotary(4)), gate)
    assert_close(module(x)[0], expected)


def attending(attend):
    return MultiHeadAttention(**SIZES, attend=attend)


def by_name(name):
    """A layer's self-attention, and whether it hides the future: see `EVERY_WAY`."""
    if name in FUNCTIONS:
        function, hides_future = FUNCTIONS[name].call, FUNCTIONS[name].causal
        return attending(Mechanism(function, hides_future=hides_future)), hides_future
    return MODULES[name].make(), name not in ("Linformer", "Mechanism")  # of `linear_attention`


def is_self_attention(name):
    """Whether a row of MODULES is called as MultiHeadAttention is."""
    parameters = inspect.signature(type(MODULES[name].make()).forward).parameters
    return {"mask", "causal", "need_weights"} <= set(parameters)


LAYERS = {"EncoderLayer"}  # called alike, and what the others stand in
EVERY_WAY = [
    *FUNCTIONS,
    *(name for name in filter(is_self_attention, MODULES) if name not in LAYERS),
]


@pytest.mark.parametrize("name", EVERY_WAY)
def test_in_the_layers_of_a_transformer(name):
    """It learns in an encoder; in a decoder too, and nothing leaks, where it hides the future."""
    torch.manual_seed(0)
    self_attention, hides_the_future = by_name(name)
    encoder = EncoderLayer(D_MODEL, HEADS, 16, norm_first=True)
    encoder.self_attention = self_attention
    decoder = DecoderLayer(D_MODEL, HEADS, 16, norm_first=True)
    decoder.self_attention = self_attention
    x, memory, target = (torch.randn(2, n, D_MODEL) for n in (N, 5, N))
    mask = padding_mask(torch.tensor([[1] * N, [1] * (N - 2) + [0] * 2]), 0)

    def losses(layer, inputs, **options):
        optimiser = torch.optim.Adam(layer.parameters(), lr=0.03)
        for _ in range(6):
            loss = (layer(*inputs, **options)[0] - target).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            yield loss.item()

    first, *_, last = losses(encoder, [x], mask=mask)
    assert last < 0.9 * first
    if not hides_the_future:
        with pytest.raises(ValueError, match=r"^causal=True asks for a hidden future, and "):
            decoder(x, memory)
        return
    first, *_, last = losses(decoder, [x, memory], mask=mask)
    assert last < 0.9 * first
    decoder.double()
    other = x.clone()
    other[:, 7:] += 1.0
    before, after = (decoder(rows.double(), memory.double())[0] for rows in (x, other))
    assert_close(after[:, :7], before[:, :7])
    assert not torch.isclose(after[:, 7:], before[:, 7:]).all()


def language_model(name):
    """A decoder-only model in which it attends: by one line, with two KV heads where it can."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 9, "d_model": D_MODEL, "n_heads": HEADS, "d_ff": 16, "n_layers": 2}
    if name in FUNCTIONS:
        function, hides = FUNCTIONS[name].call, FUNCTIONS[name].causal
        return DecoderOnly(
            **sizes, n_kv_heads=2, attend=lambda: Mechanism(function, hides_future=hides)
        )
    model = DecoderOnly(**sizes)
    for layer in model.layers:
        layer.self_attention = MODULES[name].make()
    return model


# What keeps keys or rows of them, so that a text goes on without being read again.
KEEP = {"MultiHeadAttention", "LatentAttention"}


@pytest.mark.parametrize("name", EVERY_WAY)
def test_in_a_language_model(name):
    """It reads a text, hides the future, and writes with a cache, or says that it keeps none."""
    _, hides_the_future = by_name(name)
    model, ids = language_model(name).double().eval(), torch.arange(2 * N).view(2, N) % 9
    if not hides_the_future:
        with pytest.raises(ValueError, match=r"^causal=True asks for a hidden future, and "):
            model(ids)
        return
    logits, _ = model(ids)
    other = ids.clone()
    other[:, 7:] = (other[:, 7:] + 1) % 9
    changed, _ = model(other)
    assert_close(changed[:, :7], logits[:, :7])
    assert not torch.isclose(changed[:, 7:], logits[:, 7:]).all()
    takes = name.split(",")[0] in KEEP
    if not takes:
        with pytest.raises(ValueError, match=r" takes no cache of keys and values; call without "):
            next(model.generate(ids, 2))
        return
    written = next(model.generate(ids, 2))
    assert torch.equal(written, logits[:, -1].argmax(-1))


def test_every_module_that_attends_is_tried_in_a_layer():
    """So that one that is added is a row of MODULES too."""
    tried = {type(part).__name__ for name in EVERY_WAY for part in by_name(name)[0].modules()}
    public = [getattr(attention, name) for name in attention.__all__]
    attend = {
        each.__name__
        for each in public
        if isinstance(each, type)
        and issubclass(each, nn.Module)
        and {"mask", "causal"} <= set(inspect.signature(each.forward).parameters)
    }
    assert {"DotProduct", "Performer", "LatentAttention"} <= attend
    assert attend - tried == {"HeadGate"} | LAYERS  # around another: test_multihead_attend.py


REFUSED = {
    "causal": (
        lambda module, x: module(x, causal=True),
        ValueError,
        "causal=True asks for a hidden future, and this mechanism does not hide it; give a "
        "function that does, as Mechanism(partial(linear_attention, causal=True), "
        "hides_future=True)",
    ),
    "heads of another shape": (
        lambda module, x: MultiHeadAttention(
            8, 2, attend=Mechanism(lambda q, k, v, mask: v[:, :1])
        )(x.float()),
        ValueError,
        "the output of attend must have shape (batch, heads, query, d_key) = (3, 2, 11, 4), got "
        "(3, 1, 11, 4)",
    ),
    "no function": (
        lambda module, x: Mechanism(linear_attention(*torch.ones(3, 1, 1, 2, 4))),
        TypeError,
        "function must be a function of q, k, v and mask, got Tensor",
    ),
    "a bare function": (
        lambda module, x: MultiHeadAttention(8, 2, attend=linear_attention),
        TypeError,
        "attend must be a module, got function; Mechanism(function) makes one of a function of q, "
        "k, v and mask",
    ),
    "nothing": (
        lambda module, x: setattr(module, "attend", None),
        TypeError,
        "attend must be a module, got NoneType; Mechanism(function) makes one",
    ),
    "dropout beside what attends": (
        lambda module, x: MultiHeadAttention(8, 2, dropout=0.1, attend=DotProduct()),
        ValueError,
        "give dropout=0.1 to attend, as in DotProduct(0.1)",
    ),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name, module, x):
    call, error, message = REFUSED[name]
    module.attend = Mechanism(linear_attention)
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call(module, x)


def test_it_says_what_attends(module):
    module.attend = Mechanism(partial(linear_attention, causal=True), hides_future=True)
    assert "(attend): Mechanism(linear_attention, hides_future=True)" in repr(module)
