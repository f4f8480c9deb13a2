"""The decoder without attention against a plain loop with the gates of a GRU written out."""

import pytest
import torch

from attention import padding_mask
from attention.recurrent.last_state import LastStateDecoder
from tests.unit.cases import assert_close, assert_gradients_close, randomise

VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN = 7, 3, 6, 4
TOKENS = torch.tensor([[5, 1, 4, 2], [5, 3, 3, 1]])
MASK = padding_mask(torch.tensor([[1, 2, 3, 4, 5], [3, 1, 4, 0, 0]]), 0)[:, 0]
LAST = (4, 2)  # the place of the last token of each sentence


def decoder():
    module = LastStateDecoder(VOCAB, D_EMBEDDING, KEY_DIM, HIDDEN).double()
    randomise(module, torch.Generator().manual_seed(3))
    return module


def encoded():
    states = torch.randn(
        2, 5, KEY_DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(4)
    )
    return states.requires_grad_()


def gru(x, h, w_x, w_h, b_x, b_h):
    """One step of torch's GRU for one sentence: reset and update gate, and what is new."""
    from_x, from_h = (w_x @ x + b_x).chunk(3), (w_h @ h + b_h).chunk(3)
    reset, update = (torch.sigmoid(a + b) for a, b in zip(from_x[:2], from_h[:2], strict=True))
    new = torch.tanh(from_x[2] + reset * from_h[2])
    return (1 - update) * new + update * h


def write_in_a_loop(module, states, last):
    cell, logits = list(module.cell.parameters()), []
    for ids, sentence, end in zip(TOKENS, states, last, strict=True):
        vector = torch.cat((sentence[end, : KEY_DIM // 2], sentence[0, KEY_DIM // 2 :]))
        s = torch.tanh(module.w_s.weight @ sentence[0, KEY_DIM // 2 :] + module.w_s.bias)
        for i in ids:
            e = module.embed.table.weight[i] * D_EMBEDDING**0.5
            s = gru(torch.cat((e, vector)), s, *cell)
            logits.append(module.w_o.weight @ torch.cat((s, vector, e)) + module.w_o.bias)
    return torch.stack(logits).view(*TOKENS.shape, -1)


@pytest.mark.parametrize(("mask", "last"), [(MASK, LAST), (None, (4, 4)), (MASK[:1], (4, 4))])
def test_it_equals_a_plain_loop_in_values_and_gradients(mask, last):
    module, states = decoder(), encoded()
    ours, weights = module(TOKENS, states, mask)
    theirs = write_in_a_loop(module, states, last)
    assert_close(ours, theirs)
    assert weights.shape == (2, 4, 5) and not weights.any()
    wanted = [states, *module.parameters()]
    assert_gradients_close(ours, theirs, wanted)


def test_nothing_but_the_last_states_reaches_it():
    module, states = decoder(), encoded()
    logits, _ = module(TOKENS, states, MASK)
    logits.sum().backward()
    half = KEY_DIM // 2
    for b, end in enumerate(LAST):
        reached = states.grad[b] != 0
        expected = torch.zeros(5, KEY_DIM, dtype=torch.bool)
        expected[end, :half] = expected[0, half:] = True
        assert torch.equal(reached, expected)


def test_greedy_takes_the_likeliest_token_of_teacher_forcing_on_its_own_words():
    module, states = decoder(), encoded()
    written, _ = module.greedy(states, MASK, start_id=5, end_id=99, max_length=9)
    fed = torch.cat((torch.full((2, 1), 5), written[:, :-1]), dim=1)
    logits, _ = module(fed, states, MASK)
    assert torch.equal(written, logits.argmax(-1))


@pytest.mark.usefixtures("as_a_reader")
def test_another_encoder_is_refused():
    with pytest.raises(ValueError, match="the last axis of encoded must be key_dim=6, got 8"):
        decoder()(TOKENS, torch.zeros(2, 5, 8))
