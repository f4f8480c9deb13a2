"""The encoder and the decoders against plain loops with the gates of a GRU written out."""

import pytest
import torch

from attention import padding_mask
from attention.recurrent.encoder_decoder import BahdanauDecoder, BidirectionalEncoder, LuongDecoder
from attention.recurrent.last_state import LastStateDecoder
from tests.unit.cases import assert_close, assert_gradients_close, gradients, randomise
from tests.unit.refusals import refusals

VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN, START, END = 7, 3, 6, 4, 5, 6
TOKENS = torch.tensor([[5, 1, 4, 2], [5, 3, 3, 1]])
SOURCE = torch.tensor([[1, 2, 3, 4, 5], [3, 1, 4, 0, 0]])
MASK = padding_mask(SOURCE, 0)[:, 0]  # (batch, 1, key)


def rng():
    return torch.Generator().manual_seed(3)


def encoder():
    module = BidirectionalEncoder(VOCAB, D_EMBEDDING, KEY_DIM // 2).double()
    randomise(module, rng())
    with torch.no_grad():  # a padding row that would be noticed
        module.embed.table.weight[0] = 9.0
    return module


def decoder(kind):
    module = {
        "Bahdanau": lambda: BahdanauDecoder(VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN),
        "Luong": lambda: LuongDecoder(VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN),
        "Luong, not fed": lambda: LuongDecoder(
            VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN, input_feeding=False
        ),
        "Luong, dot": lambda: LuongDecoder(VOCAB, D_EMBEDDING, KEY_DIM, KEY_DIM, score="dot"),
        "Luong, concat": lambda: LuongDecoder(VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN, score="concat"),
        "last state": lambda: LastStateDecoder(VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN),
    }[kind]().double()
    randomise(module, rng())
    return module


DECODERS = ("Bahdanau", "Luong", "Luong, not fed", "Luong, dot", "Luong, concat", "last state")


def encoded():
    """Padding too has numbers, which nobody may read."""
    states = torch.randn(2, 5, KEY_DIM, dtype=torch.float64, generator=rng())
    return states.requires_grad_()


def gru(x, h, w_x, w_h, b_x, b_h):
    """One step of torch's GRU for one sentence: reset and update gate, and what is new."""
    from_x, from_h = (w_x @ x + b_x).chunk(3), (w_h @ h + b_h).chunk(3)
    reset, update = (torch.sigmoid(a + b) for a, b in zip(from_x[:2], from_h[:2], strict=True))
    new = torch.tanh(from_x[2] + reset * from_h[2])
    return (1 - update) * new + update * h


def softmax_of(scores):
    exp = torch.stack(scores).exp()
    return exp / exp.sum()


def read_in_a_loop(module, token_ids):
    """Each sentence alone, without its padding, once from each end."""
    one_way = [p for name, p in module.gru.named_parameters() if "reverse" not in name]
    other_way = [p for name, p in module.gru.named_parameters() if "reverse" in name]
    sentences = []
    for ids in token_ids:
        x = [module.embed.table.weight[i] * D_EMBEDDING**0.5 for i in ids if i != 0]
        forward, backward = [x[0].new_zeros(KEY_DIM // 2)], [x[0].new_zeros(KEY_DIM // 2)]
        for t in range(len(x)):
            forward.append(gru(x[t], forward[-1], *one_way))
            backward.append(gru(x[-1 - t], backward[-1], *other_way))
        rows = [torch.cat(pair) for pair in zip(forward[1:], backward[:0:-1], strict=True)]
        rows += [torch.zeros_like(rows[0])] * (len(ids) - len(rows))
        sentences.append(torch.stack(rows))
    return torch.stack(sentences)


def test_the_encoder_equals_a_plain_loop_in_values_and_gradients():
    module = encoder()
    ours, theirs = module(SOURCE), read_in_a_loop(module, SOURCE)
    assert_close(ours, theirs)
    wanted = list(module.parameters())
    assert_gradients_close(ours, theirs, wanted)


def test_a_sentence_of_padding_alone_is_zero():
    module = encoder()
    ids = torch.tensor([[0, 0, 0], [1, 2, 0]])
    states = module(ids)
    assert not states[0].any()
    assert_close(states[1:], module(ids[1:]))
    for kind in DECODERS:
        logits, weights = decoder(kind)(TOKENS, states, padding_mask(ids, 0)[:, 0])
        assert logits.isfinite().all()
        assert not weights[0].any()


def attend_in_a_loop(module, query, keys, allowed):
    """Context and weights of one query over the keys of one sentence that are tokens."""
    attention, scores = module.attention, []
    additive = attention if isinstance(module, BahdanauDecoder) else None
    if additive is None and attention.score == "concat":
        additive = attention.additive
    for key in keys[allowed]:
        if additive is not None:
            hidden = torch.tanh(additive.w_q.weight @ query + additive.w_k.weight @ key)
            scores.append(additive.v.weight[0] @ hidden)
        elif attention.score == "general":
            scores.append(query @ attention.w.weight.T @ key)
        else:
            scores.append(query @ key)
    weights = torch.zeros(len(keys), dtype=torch.float64)
    weights = weights.masked_scatter(allowed, softmax_of(scores))
    return sum(w * key for w, key in zip(weights, keys, strict=True)), weights


def write_in_a_loop(module, token_ids, states, mask):
    """The papers' recurrences, one sentence and one token at a time."""
    cell = list(module.cell.parameters())  # the order of `gru`
    logits, weights = [], []
    for b, ids in enumerate(token_ids):
        s = torch.tanh(module.w_s.weight @ states[b, 0, KEY_DIM // 2 :] + module.w_s.bias)
        combined = torch.zeros_like(s)
        for i in ids:
            e = module.embed.table.weight[i] * D_EMBEDDING**0.5
            if isinstance(module, BahdanauDecoder):
                context, row = attend_in_a_loop(module, s, states[b], mask[b, 0])
                s = gru(torch.cat((e, context)), s, *cell)
                output = torch.cat((s, context, e))
            elif isinstance(module, LastStateDecoder):
                half, row = KEY_DIM // 2, torch.zeros(len(states[b]), dtype=torch.float64)
                last = states[b][mask[b, 0]][-1]
                vector = torch.cat((last[:half], states[b, 0, half:]))
                s = gru(torch.cat((e, vector)), s, *cell)
                output = torch.cat((s, vector, e))
            else:
                s = gru(torch.cat((e, combined)) if module.input_feeding else e, s, *cell)
                context, row = attend_in_a_loop(module, s, states[b], mask[b, 0])
                output = combined = torch.tanh(module.w_c.weight @ torch.cat((context, s)))
            logits.append(module.w_o.weight @ output + module.w_o.bias)
            weights.append(row)
    shape = (*token_ids.shape, -1)
    return torch.stack(logits).view(shape), torch.stack(weights).view(shape)


@pytest.mark.parametrize("mask", [MASK, None, MASK[:1]], ids=["padding", "none", "one for all"])
@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_equals_a_plain_loop_in_values_and_gradients(kind, mask):
    module, states = decoder(kind), encoded()
    ours = list(module(TOKENS, states, mask))
    everywhere = torch.ones(2, 1, 5) == 1 if mask is None else mask.expand(2, 1, 5)
    theirs = list(write_in_a_loop(module, TOKENS, states, everywhere))
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected)
    wanted = [states, *module.parameters()]
    if kind == "last state":  # its weights are zeros
        ours, theirs = ours[:1], theirs[:1]
    for actual, expected in zip(gradients(ours, wanted), gradients(theirs, wanted), strict=True):
        assert_close(actual, expected)


@pytest.mark.parametrize("kind", ["Bahdanau", "Luong, concat"])
def test_the_keys_are_projected_once_for_all_steps(kind):
    module, projected = decoder(kind), []
    additive = module.attention if kind == "Bahdanau" else module.attention.additive
    additive.w_k.register_forward_hook(lambda *_: projected.append(True))
    module(TOKENS, encoded(), MASK)
    assert len(projected) == 1


@pytest.mark.parametrize("kind", DECODERS)
def test_greedy_takes_the_likeliest_token_of_teacher_forcing_on_its_own_words(kind):
    module, states = decoder(kind), encoded()
    written, weights = module.greedy(states, MASK, start_id=START, end_id=99, max_length=9)
    assert written.shape == (2, 9)
    fed = torch.cat((torch.full((2, 1), START), written[:, :-1]), dim=1)
    logits, their_weights = module(fed, states, MASK)
    assert torch.equal(written, logits.argmax(-1))
    assert_close(weights, their_weights)
    assert not weights.requires_grad


@pytest.mark.parametrize("kind", DECODERS)
def test_greedy_stops_at_the_end_token_and_pads(kind):
    module, states = decoder(kind), encoded()
    endless, _ = module.greedy(states, MASK, start_id=START, end_id=99, max_length=9)
    end = int(endless[0, 2])
    written, weights = module.greedy(states, MASK, start_id=START, end_id=end, max_length=9)
    for row, free in zip(written.tolist(), endless.tolist(), strict=True):
        n = free.index(end) + 1 if end in free else 9
        assert row == (free[:n] + [0] * 9)[: len(row)]
        assert len(row) >= n
    assert weights.shape == (*written.shape, 5)
    alone, _ = module.greedy(states[:1], MASK[:1], start_id=START, end_id=end, max_length=9)
    assert alone[0, -1] == end


STATES = torch.zeros(2, 5, 6)
test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: BidirectionalEncoder(7, 3, 4)(torch.tensor([[1, 2], [0, 2]])),
            "token_ids has padding (pad_id=0) in front of a token; pad on the right, as "
            "Vocabulary.encode_batch does",
        ),
        (
            lambda: BahdanauDecoder(7, 3, 5, 4),
            "key_dim must be 2 · the encoder's hidden_dim, got 5",
        ),
        (
            lambda: BahdanauDecoder(7, 3, 6, 4)(TOKENS[:1], STATES),
            "token_ids and encoded must have the same batch, got 1 and 2",
        ),
        (
            lambda: LuongDecoder(7, 3, 6, 4)(TOKENS, STATES, padding_mask(SOURCE, 0)),
            "mask of shape (2, 1, 1, 5) does not broadcast to the scores = (2, 1, 5); "
            "without an axis of heads, as padding_mask makes it, take mask[:, 0]",
        ),
        (
            lambda: LastStateDecoder(7, 3, 6, 4)(TOKENS, torch.zeros(2, 5, 8)),
            "the last axis of encoded must be key_dim=6, got 8",
        ),
    ]
)


def with_another_pad_id(module, ids):
    """The same module and ids where 3 is the padding, and 0 the token that 3 was."""
    rows = torch.tensor([3, 1, 2, 0, 4, 5, 6])
    with torch.no_grad():
        module.embed.table.weight.copy_(module.embed.table.weight[rows])
    module.pad_id, module.embed.table.padding_idx = 3, 3
    return module, rows[ids]


def test_the_encoder_reads_no_padding_of_another_id():
    expected = encoder()(SOURCE)
    module, ids = with_another_pad_id(encoder(), SOURCE)
    assert torch.equal(module(ids), expected)


@pytest.mark.parametrize("kind", [BahdanauDecoder, LuongDecoder])
def test_a_sentence_that_has_ended_goes_on_with_the_padding(kind):
    module = kind(VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN, pad_id=3)
    with torch.no_grad():
        for name, x in module.named_parameters():
            if name.startswith("w_o"):
                x.zero_()
        # Until something is read that says otherwise, the end is the likeliest token.
        module.w_o.bias[END] = 1.0
    encoded = torch.randn(2, 5, KEY_DIM)
    ids, _ = module.greedy(encoded, start_id=START, end_id=END, max_length=4)
    assert ids.tolist() == [[END], [END]]
    step = module.step

    def only_the_first_ends(embedded, state, attend):
        logits, weights, state = step(embedded, state, attend)
        logits[1, 1] = 2.0
        return logits, weights, state

    module.step = only_the_first_ends
    ids, _ = module.greedy(encoded, start_id=START, end_id=END, max_length=3)
    assert ids.tolist() == [[END, 3, 3], [1, 1, 1]]
