"""The encoder and both decoders against plain loops with the gates of a GRU written out."""

import pytest
import torch

from attention import padding_mask
from attention.recurrent.encoder_decoder import BahdanauDecoder, BidirectionalEncoder, LuongDecoder
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
    }[kind]().double()
    randomise(module, rng())
    return module


DECODERS = ("Bahdanau", "Luong", "Luong, not fed", "Luong, dot", "Luong, concat")


def encoded():
    states = torch.randn(2, 5, KEY_DIM, dtype=torch.float64, generator=rng())
    return states.masked_fill(~MASK.mT, 0.0).requires_grad_()


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


def test_padding_changes_no_state():
    module = encoder()
    alone = module(SOURCE[1:, :3])
    assert_close(module(SOURCE)[1:, :3], alone)
    longer = torch.cat((SOURCE, torch.zeros(2, 4, dtype=torch.int64)), dim=1)
    assert_close(module(longer)[1:, :3], alone)
    assert not module(longer)[1, 3:].any()


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
            else:
                s = gru(torch.cat((e, combined)) if module.input_feeding else e, s, *cell)
                context, row = attend_in_a_loop(module, s, states[b], mask[b, 0])
                output = combined = torch.tanh(module.w_c.weight @ torch.cat((context, s)))
            logits.append(module.w_o.weight @ output + module.w_o.bias)
            weights.append(row)
    shape = (*token_ids.shape, -1)
    return torch.stack(logits).view(shape), torch.stack(weights).view(shape)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_equals_a_plain_loop_in_values_and_gradients(kind):
    module, states = decoder(kind), encoded()
    ours = list(module(TOKENS, states, MASK))
    theirs = list(write_in_a_loop(module, TOKENS, states, MASK))
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected)
    wanted = [states, *module.parameters()]
    for actual, expected in zip(gradients(ours, wanted), gradients(theirs, wanted), strict=True):
        assert_close(actual, expected)


@pytest.mark.parametrize("kind", DECODERS)
def test_padding_of_the_source_changes_nothing(kind):
    module, states = decoder(kind), encoded()
    logits, weights = module(TOKENS, states.masked_fill(~MASK.mT, 1e3), MASK)
    assert not weights[1, :, 3:].any()
    alone, _ = module(TOKENS[1:], states[1:, :3])
    assert_close(logits[1:], alone)


@pytest.mark.parametrize(("kind", "first"), [("Bahdanau", 3), ("Luong", 2), ("Luong, not fed", 2)])
def test_which_state_is_the_query(kind, first):
    """Another token at step 2 changes s_2: Luong's query at step 2, Bahdanau's at step 3."""
    module, states = decoder(kind), encoded()
    other = TOKENS.clone()
    other[:, 2] = 6
    _, weights = module(TOKENS, states, MASK)
    _, changed = module(other, states, MASK)
    same = (weights == changed).all(-1).all(0)
    assert same.tolist() == [step < first for step in range(4)]


@pytest.mark.parametrize("kind", DECODERS)
def test_the_query_is_the_state_before_or_after_the_step(kind):
    module, states = decoder(kind), encoded()
    state, attend = module.attend_to(states, MASK)
    queries = []

    def listen(query):
        queries.append(query[:, 0])
        return attend(query)

    embedded = torch.randn(2, D_EMBEDDING, dtype=torch.float64, generator=rng())
    *_, after = module.step(embedded, state, listen)
    before, after = (s if kind == "Bahdanau" else s[0] for s in (state, after))
    assert len(queries) == 1
    assert torch.equal(queries[0], before if kind == "Bahdanau" else after)
    assert not torch.equal(before, after)


@pytest.mark.parametrize("kind", ["Bahdanau", "Luong, concat"])
def test_the_keys_are_projected_once_for_all_steps(kind):
    module, projected = decoder(kind), []
    additive = module.attention if kind == "Bahdanau" else module.attention.additive
    additive.w_k.register_forward_hook(lambda *_: projected.append(True))
    module(TOKENS, encoded(), MASK)
    assert len(projected) == 1


@pytest.mark.parametrize("kind", ["Bahdanau", "Luong", "Luong, not fed"])
def test_where_the_context_goes(kind):
    """Into the next state at once, one step later by input feeding, or never."""
    module, states = decoder(kind), encoded()
    embedded = torch.randn(2, D_EMBEDDING, dtype=torch.float64, generator=rng())
    reached = []
    for change in (0.0, 1.0):
        state, attend = module.attend_to(states, MASK)

        def changed(query, attend=attend, change=change):
            context, weights = attend(query)
            return context + change, weights

        *_, state = module.step(embedded, state, changed)
        one = state if kind == "Bahdanau" else state[0]
        *_, state = module.step(embedded, state, attend)
        reached.append((one, state if kind == "Bahdanau" else state[0]))
    same = [torch.equal(a, b) for a, b in zip(*reached, strict=True)]
    assert (
        same
        == {
            "Bahdanau": [False, False],
            "Luong": [True, False],
            "Luong, not fed": [True, True],
        }[kind]
    )


def test_without_input_feeding_the_whole_recurrence_can_run_before_the_attention():
    module, states = decoder("Luong, not fed"), encoded()
    gru_of_torch = torch.nn.GRU(D_EMBEDDING, HIDDEN, batch_first=True).double()
    gru_of_torch.load_state_dict({f"{n}_l0": p for n, p in module.cell.state_dict().items()})
    first = module.first_state(states)
    s, _ = gru_of_torch(module.embed(TOKENS), first[None])
    context, weights = module.attention(s, states, mask=MASK)
    logits = module.w_o(torch.tanh(module.w_c(torch.cat((context, s), dim=-1))))
    ours = module(TOKENS, states, MASK)
    assert_close(ours[0], logits)
    assert_close(ours[1], weights)


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


@pytest.mark.parametrize("kind", DECODERS)
def test_inputs_are_left_as_they_were_and_gradients_reach_the_encoder(kind):
    module, ids = decoder(kind), SOURCE.clone()
    reader = encoder()
    logits, _ = module(TOKENS, reader(ids), MASK)
    logits.sum().backward()
    assert torch.equal(ids, SOURCE)
    assert all(p.grad.any() for p in reader.parameters())


STATES = torch.zeros(2, 5, 6)
DECODER = BahdanauDecoder(7, 3, 6, 4)
REFUSED = {
    "padding on the left": (
        lambda: BidirectionalEncoder(7, 3, 4)(torch.tensor([[1, 2], [0, 2]])),
        "token_ids has padding (pad_id=0) in front of a token; pad on the right, as "
        "Vocabulary.encode_batch does",
    ),
    "a negative key_dim": (
        lambda: BahdanauDecoder(7, 3, -1, 4),
        "key_dim must be at least 1, got -1",
    ),
    "an odd key_dim": (
        lambda: BahdanauDecoder(7, 3, 5, 4),
        "key_dim must be 2 · the encoder's hidden_dim, got 5",
    ),
    "targets of another batch": (
        lambda: DECODER(TOKENS[:1], STATES),
        "token_ids and encoded must be equally many sentences, got 1 and 2",
    ),
}
for module in (DECODER, LuongDecoder(7, 3, 6, 4)):
    kind = type(module).__name__
    REFUSED |= {
        f"{kind}, a mask with an axis of heads": (
            lambda module=module: module(TOKENS, STATES, padding_mask(SOURCE, 0)),
            "mask of shape (2, 1, 1, 5) does not broadcast to the scores = (2, 1, 5); "
            "without an axis of heads, as padding_mask makes it, take mask[:, 0]",
        ),
    }


test_bad_input_is_refused_with_a_reason = refusals(REFUSED)


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
