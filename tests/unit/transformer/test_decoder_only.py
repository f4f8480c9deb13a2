from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention import (
    DecoderOnly,
    DotProduct,
    EncoderLayer,
    LearnedPositions,
    QKNorm,
    QKSequential,
    Rotary,
    SinusoidalPositionalEncoding,
    padding_mask,
)
from tests.unit.cases import assert_close, assert_gradients_close, randomise
from tests.unit.refusals import refusals

VOCAB, D_MODEL, HEADS, KV_HEADS, D_KEY, D_FF, N = 19, 12, 4, 2, 4, 20, 7


def gpt2():
    return DecoderOnly(
        VOCAB,
        D_MODEL,
        HEADS,
        D_FF,
        n_layers=2,
        positions=LearnedPositions(D_MODEL, 40),
        activation=F.gelu,
    )


def llama(attend=lambda: DotProduct(transform=Rotary(D_KEY)), **options):
    return DecoderOnly(
        VOCAB,
        D_MODEL,
        HEADS,
        D_FF,
        n_layers=2,
        n_kv_heads=KV_HEADS,
        d_key=D_KEY,
        activation=F.silu,
        gated=True,
        norm=partial(nn.RMSNorm, eps=1e-5),
        attend=attend,
        **{"bias": False, **options},
    )


def qwen3():
    return llama(lambda: DotProduct(transform=QKSequential(QKNorm(D_KEY), Rotary(D_KEY))))


def vaswani():
    positions = SinusoidalPositionalEncoding(D_MODEL)
    return DecoderOnly(
        VOCAB, D_MODEL, HEADS, D_FF, n_layers=2, positions=positions, scaled=True, tied=False
    )


MODELS = {"GPT-2": gpt2, "Llama": llama, "Qwen3": qwen3, "sinusoidal": vaswani}
MODELS["Qwen2"] = partial(llama, bias="qkv")


def made(name):
    model = MODELS[name]().double().eval()
    randomise(model, torch.Generator().manual_seed(1))
    return model


def ids(batch=2, n=N):
    return torch.randint(VOCAB, (batch, n), generator=torch.Generator().manual_seed(n))


def test_gpt2s_settings_equal_torchs_layers_in_values_and_gradients():
    theirs = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, 0.0, F.gelu, batch_first=True, norm_first=True
    )
    theirs = nn.TransformerEncoder(theirs, 2, nn.LayerNorm(D_MODEL), enable_nested_tensor=False)
    randomise(theirs.double(), torch.Generator().manual_seed(1))
    model = gpt2().double()
    model.layers = nn.ModuleList(EncoderLayer.from_torch(layer) for layer in theirs.layers)
    model.norm = theirs.norm
    logits, weights = model(ids())

    table = model.embedding.table.weight
    x = table[ids()] + model.positions.table[:N]
    hidden = nn.Transformer.generate_square_subsequent_mask(N, dtype=torch.float64)
    expected = theirs(x, hidden) @ table.T
    assert_close(logits, expected)
    assert len(weights) == 2 and weights[0].shape == (2, HEADS, N, N)
    shared = [table, model.positions.table, model.norm.weight]
    assert_gradients_close(logits, expected, shared)


def by_hand(model, token_ids, *, norms=False):
    """Llama's computation from the weights alone, in plain tensors (Touvron et al. 2023, §2.2)."""
    w = dict(model.named_parameters())
    n = token_ids.shape[1]

    def norm(x, gain, eps):
        return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gain

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0.0)

    theta = 10000.0 ** (-torch.arange(0, D_KEY, 2, dtype=torch.float64) / D_KEY)
    turn = torch.polar(torch.ones(n, D_KEY // 2).double(), torch.arange(n)[:, None] * theta)

    def turned(x):
        pairs = torch.complex(x[..., 0::2], x[..., 1::2]) * turn
        return torch.stack((pairs.real, pairs.imag), -1).flatten(-2)

    x = w["embedding.table.weight"][token_ids]
    for i in range(2):
        layer = f"layers.{i}"
        y = norm(x, w[f"{layer}.self_attention_norm.weight"], 1e-5)
        q, k, v = (
            linear(y, f"{layer}.self_attention.w_{part}").unflatten(-1, (-1, D_KEY)).mT.mT
            for part in "qkv"
        )
        heads = []
        for h in range(HEADS):
            q_h, k_h, v_h = q[:, :, h], k[:, :, h // 2], v[:, :, h // 2]
            if norms:
                gains = f"{layer}.self_attention.attend.transform.0"
                q_h = norm(q_h, w[f"{gains}.q_norm.weight"], 1e-6)
                k_h = norm(k_h, w[f"{gains}.k_norm.weight"], 1e-6)
            scores = turned(q_h) @ turned(k_h).mT / D_KEY**0.5
            future = torch.ones(n, n).triu(1) == 1
            heads.append(scores.masked_fill(future, -torch.inf).softmax(-1) @ v_h)
        x = x + linear(torch.cat(heads, -1), f"{layer}.self_attention.w_o")
        y = norm(x, w[f"{layer}.feed_forward_norm.weight"], 1e-5)
        a, b = (linear(y, f"{layer}.feed_forward.w_{j}") for j in (1, 3))
        x = x + linear(a * a.sigmoid() * b, f"{layer}.feed_forward.w_2")
    return norm(x, w["norm.weight"], 1e-5) @ w["embedding.table.weight"].T


@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_llamas_settings_equal_the_formulas_in_values_and_gradients(name, need_weights):
    model = made(name)
    logits, _ = model(ids(), need_weights=need_weights)
    expected = by_hand(model, ids(), norms=name == "Qwen3")
    assert_close(logits, expected)
    assert_gradients_close(logits, expected, list(model.parameters()))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("pieces", [[1] * N, [3, 4], [2, 1, 4]], ids=str)
def test_a_cached_pass_in_pieces_equals_the_whole(name, pieces):
    model = made(name)
    expected, all_weights = model(ids())
    cache, logits, rows = model.new_cache(2, N), [], []
    with torch.no_grad():
        for piece in ids().split(pieces, dim=1):
            new, weights = model(piece, cache=cache)
            logits.append(new)
            rows.append(F.pad(weights[1], (0, N - weights[1].shape[-1])))
    assert_close(torch.cat(logits, dim=1), expected)
    assert_close(torch.cat(rows, dim=2), all_weights[1])


@pytest.mark.parametrize("name", ["Llama", "Qwen3"])
def test_prompts_with_padding_in_front_equal_single_ones(name):
    model, long, short = made(name), ids(1), ids(1, 4)
    both = torch.cat((long, F.pad(short, (N - 4, 0))))
    is_token = torch.tensor([[True] * N, [False] * (N - 4) + [True] * 4])
    logits, _ = model(both, is_token[:, None, None, :])
    assert_close(logits[:1], model(long)[0])
    assert_close(logits[1:, N - 4 :], model(short)[0])
    written = torch.stack(list(model.generate(both, 6, is_token=is_token)), 1)
    for alone, row in zip((long, short), written, strict=True):
        assert torch.equal(torch.stack(list(model.generate(alone, 6)), 1)[0], row)


@pytest.mark.parametrize("name", MODELS)
def test_it_writes_the_likeliest_of_the_whole_pass(name):
    """Greedy, with its cache, against passes over all that is written, without one."""
    model, text = made(name), ids()
    written = list(model.generate(text, 5))
    with torch.no_grad():
        for token in written:
            assert torch.equal(token, model(text)[0][:, -1].argmax(-1))
            text = torch.cat((text, token[:, None]), 1)


def drawn(logits, **options):
    """The share of each token among 4,000 draws."""
    from attention.transformer.decoder_only import next_token

    options = {"temperature": 1.0, "top_k": None, "top_p": None} | options
    generator = torch.Generator().manual_seed(0)
    tokens = next_token(logits.expand(4000, -1), generator=generator, **options)
    return tokens.bincount(minlength=logits.shape[-1]) / 4000


P = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])
ALLOWED = {
    "all": ({}, P),
    "hotter": ({"temperature": 2.0}, P.sqrt()),
    "colder": ({"temperature": 0.5}, P**2),
    "the two likeliest": ({"top_k": 2}, P * torch.tensor([0, 1, 0, 1, 0])),
    "more than there are": ({"top_k": 9}, P),
    "a share": ({"top_p": 0.75}, P * torch.tensor([0, 1, 0, 1, 1])),
    "a share that one has": ({"top_p": 0.01}, P * torch.tensor([0, 1, 0, 0, 0])),
    "both": ({"top_k": 3, "top_p": 0.5}, P * torch.tensor([0, 1, 0, 1, 0])),
}


@pytest.mark.parametrize(("options", "wanted"), ALLOWED.values(), ids=ALLOWED)
def test_tokens_are_drawn_by_their_probability(options, wanted):
    shares = drawn(P.log(), **options)
    assert torch.equal(shares > 0, wanted > 0)
    assert (shares - wanted / wanted.sum()).abs().max() < 0.03


def test_a_generator_decides_and_the_global_one_stays():
    model = made("Llama")

    def write(seed):
        generator = torch.Generator().manual_seed(seed)
        options = {"temperature": 1.0, "top_k": 5, "generator": generator}
        return torch.stack(list(model.generate(ids(), 8, **options)), 1)

    before = torch.get_rng_state()
    assert torch.equal(write(0), write(0)) and not torch.equal(write(0), write(1))
    assert torch.equal(torch.get_rng_state(), before)


def test_an_ended_text_stays_ended_and_all_ended_stop():
    model, text = made("Llama"), ids(3)
    free = torch.stack(list(model.generate(text, 8)), 1)
    end = free[0, 2].item()
    stopped = torch.stack(list(model.generate(text, 8, end_id=end)), 1)
    for row, whole in zip(stopped, free, strict=True):
        length = (whole == end).nonzero()[0].item() if (whole == end).any() else 8
        assert torch.equal(row[:length], whole[: stopped.shape[1]][:length])
        assert (row[length:] == end).all()
    first = model.generate(text[:1], 8, end_id=end)
    assert len(list(first)) == (free[0] == end).nonzero()[0].item() + 1


def test_nothing_is_computed_before_a_token_is_asked_for():
    model, calls = made("Llama"), []
    model.norm.register_forward_hook(lambda *_: calls.append(1))
    tokens = model.generate(ids(), 3)
    assert not calls
    next(tokens)
    assert len(calls) == 1


def test_names_and_shapes_of_the_parameters():
    shapes = {name: tuple(p.shape) for name, p in llama(bias="qkv").named_parameters()}
    layer = {name.split(".", 2)[2]: s for name, s in shapes.items() if name.startswith("layers.1.")}
    assert layer == {
        "self_attention.w_q.weight": (16, 12),
        "self_attention.w_q.bias": (16,),
        "self_attention.w_k.weight": (8, 12),
        "self_attention.w_k.bias": (8,),
        "self_attention.w_v.weight": (8, 12),
        "self_attention.w_v.bias": (8,),
        "self_attention.w_o.weight": (12, 16),
        "self_attention_norm.weight": (12,),
        "feed_forward.w_1.weight": (20, 12),
        "feed_forward.w_2.weight": (12, 20),
        "feed_forward.w_3.weight": (20, 12),
        "feed_forward_norm.weight": (12,),
    }
    others = {name for name in shapes if not name.startswith("layers.")}
    assert others == {"embedding.table.weight", "norm.weight"}
    assert dict(vaswani().named_parameters())["head.weight"].shape == (VOCAB, D_MODEL)


def test_a_padding_row_of_a_tied_table_may_move():
    """And rows that are hidden from every token change nothing."""
    model = made("Llama")
    text = ids()
    expected, _ = model(text)
    hidden = torch.cat((text, torch.zeros_like(text[:, :2])), 1)
    mask = padding_mask(hidden, 0)
    mask[..., :N], mask[..., N:] = True, False
    assert_close(model(hidden, mask)[0][:, :N], expected)


def test_shapes_are_those_of_the_meta_device():
    """Where no number is computed, as a model of gigabytes is counted."""
    with torch.device("meta"), torch.no_grad():
        model = qwen3()
        cache = model.new_cache(2, N)
        logits, weights = model(torch.zeros(2, N, dtype=torch.int64), cache=cache)
    assert logits.shape == (2, N, VOCAB) and weights[0].shape == (2, HEADS, N, N)


def on_another_device():
    cache = llama().to("meta").new_cache(2, N)
    with torch.no_grad():
        return llama()(IDS, cache=cache)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    "options", [{"temperature": 1e-3}, {"top_p": 1e-8}, {"top_p": 1.0}], ids=str
)
def test_a_draw_has_numbers_at_any_temperature(dtype, options):
    logits = torch.cat((torch.tensor([70.0, 69.0, -3.0]), torch.linspace(-9, 9, 500)))
    shares = drawn(logits.to(dtype), **options)
    assert shares.argmax() == 0 and shares.sum() == pytest.approx(1.0)


IDS = ids()
REFUSED = {
    "prompts padded behind": (
        lambda: llama().generate(IDS, 2, is_token=torch.tensor([[True] * 7, [True] * 6 + [False]])),
        ValueError,
        "is_token says that a prompt ends before the last column",
    ),
    "more tokens than positions": (
        lambda: gpt2().generate(IDS, 35),
        ValueError,
        "a prompt of 7 and n_new=35 tokens are more than the model's positions, max_length=40",
    ),
    "one cache for all layers": (
        lambda: llama()(IDS, cache=llama().new_cache(2, N)[:1] * 2),
        ValueError,
        "cache must hold another one for each layer, all of one length",
    ),
    "post-norm": (
        lambda: llama(norm_first=False),
        TypeError,
        "attention.transformer.encoder.EncoderLayer() got multiple values for keyword argument",
    ),
    "a cache elsewhere": (
        lambda: on_another_device(),
        ValueError,
        "key is on cpu, and this cache on meta; make it with device='cpu'",
    ),
    "drawing of the likeliest": (
        lambda: llama().generate(IDS, 2, top_k=3),
        ValueError,
        "temperature=0 draws nothing: give one above 0 beside top_k or top_p",
    ),
    "a temperature below 0": (
        lambda: llama().generate(IDS, 2, temperature=-1.0),
        ValueError,
        "temperature must be at least 0, got -1.0",
    ),
    "a share of nothing": (
        lambda: llama().generate(IDS, 2, temperature=1.0, top_p=0.0),
        ValueError,
        "top_p must be above 0 and at most 1, got 0.0",
    ),
    "padding where positions are counted": (
        lambda: gpt2().generate(IDS, 2, is_token=IDS[0, 0] != IDS),
        ValueError,
        "prompts of several lengths need padding, and this model would count its positions",
    ),
    "the cache of one layer": (
        lambda: llama()(IDS, cache=llama().new_cache(2, N)[:1]),
        ValueError,
        "cache must be a list of one for each of 2 layers, got 1; new_cache(batch, max_length)",
    ),
    "an option that no layer has": (
        lambda: llama(n_experts=4),
        TypeError,
        "EncoderLayer.__init__() got an unexpected keyword argument 'n_experts'",
    ),
}


test_bad_input_is_refused = refusals(REFUSED)
