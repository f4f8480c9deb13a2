"""Right answers of another kind than the book's pass, and what a check calls right is right.

Of a kind, such as a view, another dtype or an answer without weights, one stands here for all.
`written.py` has right answers in a learner's own code.
"""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import attention
from attention import (
    FeedForward,
    MultiHeadAttention,
    checks,
)
from attention.checks import (
    back_to_verb,
    decoder_step,
    look_back,
    pre_norm_layer,
    receptive_field,
    remove_each,
    rotary_attention,
    step_cost,
    training_step,
    two_heads,
)
from attention.checks.inputs import Numbers
from attention.trained import dates, relative_clauses, who_and_whom
from attention.trained.induction.data import draw_sequences
from tests.unit.checks import written

pytestmark = pytest.mark.usefixtures("as_a_reader")


def pattern(length, d_model):
    return attention.SinusoidalPositionalEncoding(d_model, length).table.double()


def step_by_search(k, d_model):
    """Found from the pattern itself, without a formula: what takes each row to the one k on."""
    pe = pattern(20_000 + abs(k), d_model)
    before, after = (pe[:-k], pe[k:]) if k > 0 else (pe[-k:], pe[:k])
    return torch.linalg.lstsq(before, after).solution.T


def attention_with_rows_of_nan(query, key, value, mask=None):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1) @ value, None


class OutputAlone(written.Module):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value, mask)[0]


class WithDropout(written.Module):
    def __init__(self, d_model, n_heads, dropout=0.1):
        super().__init__(d_model, n_heads, bias=False)
        self.drop = nn.Dropout(dropout)

    def attend(self, q, k, v, mask):
        weights = self.drop(super().attend(q, k, v, mask)[1])
        return weights @ v, weights


def on_a_circle(words, n_positions):
    """Two columns: the query is the place two steps further."""
    angle = torch.arange(n_positions) * 2 * math.pi / n_positions
    w_q, w_k = torch.zeros(2, len(words) + n_positions, 2)
    w_k[len(words) :] = torch.stack([angle.cos(), angle.sin()], dim=1)
    w_q[len(words) :] = 100 * w_k[len(words) :].roll(-2, dims=0)
    return w_q, w_k


def fitted(d_model):
    """The best matrix from each encoding to the one before it, with no thought of hands."""
    pe = pattern(5000, d_model)
    return [500 * torch.linalg.lstsq(pe[1:], pe[:-1]).solution, torch.eye(d_model).double()]


def by_a_closure(model, optimiser, batches):
    torch.manual_seed(0)  # as the chapter's `train` begins
    model.train()

    def step(token_ids, verb, who):
        def closure():
            model.zero_grad(set_to_none=False)
            loss = F.cross_entropy(model(token_ids)[range(len(verb)), verb], who)
            loss.backward()
            return loss

        return optimiser.step(closure).detach()

    losses = torch.stack([step(*batch) for batch in batches])
    model.eval()
    return losses


def greedy_from_the_last_pass(logits_of, start, end, longest):
    signs = torch.tensor([start])
    for _ in range(longest):
        likeliest = logits_of(signs).argmax(-1)  # causal: the earlier ones stay as they are
        if end in likeliest:
            break
        signs = torch.cat([torch.tensor([start]), likeliest])
    return likeliest


def layer_that_clears_its_weights(x, w, n_heads):
    """They are the call's own."""
    d_ff, d_model = w["feed_forward.w_1.weight"].shape
    layer = attention.EncoderLayer(d_model, n_heads, d_ff, norm_first=True)
    layer.load_state_dict(w)
    for weight in w.values():
        weight.zero_()
    return layer(x)[0]


def heads_by_the_query():
    """Layer 1 finds the same token and hands over its place plus one; layer 2 goes there."""

    def rows(block, what):
        w = torch.zeros(128, 32)
        w[block] = what
        return w

    token, place, copy, answer = written.TOKEN, written.PLACE, written.COPY, written.ANSWER
    eye, on = torch.eye(32), torch.eye(32).roll(1, dims=1)
    first = [rows(token, 100 * eye), rows(token, eye), rows(place, on), rows(copy, eye).T]
    second = [rows(copy, 300 * eye), rows(place, eye), rows(token, eye), rows(answer, eye).T]
    return first, tuple(w.double() for w in second)


def step_by_beginnings(model, letters, signs, pad_id):
    """Without a mask: one pass for each beginning, of which the last row counts."""
    total = count = 0
    for i in range(1, signs.shape[1]):
        last = model(letters, signs[:, :i], None)[:, -1]
        total += F.cross_entropy(last, signs[:, i], ignore_index=pad_id, reduction="sum")
        count += (signs[:, i] != pad_id).sum()
    return total / count


def step_over_all_signs(model, letters, signs, pad_id):
    """All signs go in, in both masks and training mode; the last row is not compared."""
    mask = attention.causal_mask(signs.shape[1]) & attention.padding_mask(signs, pad_id)
    logits = model.train()(letters, signs=signs, mask=mask)[:, :-1]
    return F.cross_entropy(logits.transpose(1, 2), signs[:, 1:], ignore_index=pad_id)


@pytest.mark.parametrize(
    ("check", "function"),
    [
        (checks.check_step_matrix, step_by_search),
        (checks.check_projection, lambda x, w, b=None: F.linear(x, w.T, b)),
        # A result that does not lie in memory as it is read.
        (checks.check_merge_heads, lambda x: x.permute(1, 3, 0, 2).flatten(0, 1).permute(1, 2, 0)),
        # A view.
        (checks.check_split_heads, lambda x, n: x.unflatten(-1, (n, -1)).movedim(2, 1)),
        (checks.check_scaled_dot_product_attention, F.scaled_dot_product_attention),
        (checks.check_scaled_dot_product_attention, attention_with_rows_of_nan),
        (checks.check_multi_head_attention, OutputAlone),
        (checks.check_multi_head_attention, WithDropout),
        (checks.check_find_by, on_a_circle),
        (checks.check_find_by, lambda *sizes: tuple(w.long() for w in written.find_by(*sizes))),
        (checks.check_find_by, partial(written.find_by, size=4.5)),
        (checks.check_look_back, fitted),
        (checks.check_training_loop, by_a_closure),
        (checks.check_greedy, greedy_from_the_last_pass),
        # Where the places begin makes no difference.
        (
            checks.check_rotary_attention,
            partial(written.rotary_attention, **written.both(lambda x: written.turn(x, first=100))),
        ),
        (checks.check_pre_norm_layer, layer_that_clears_its_weights),
        (checks.check_two_heads, heads_by_the_query),
        (checks.check_training_step, step_by_beginnings),
        (checks.check_training_step, step_over_all_signs),
        (checks.check_what_followed, attention.trained.head_scores.induction_score),
    ],
)
def test_a_right_answer_of_another_kind_passes(check, function):
    for seed in (0, 1):
        result = check(function, seed=seed)
        assert result.passed, result


def test_float64_passes_with_a_note():
    result = checks.check_merge_heads(lambda x: attention.merge_heads(x).double())
    assert result.passed
    assert "float64 came back for float32" in repr(result)


def test_a_query_that_sees_nothing_is_noted():
    nan = checks.check_scaled_dot_product_attention(attention_with_rows_of_nan)
    assert "gets NaN from you" in repr(nan)
    zero = checks.check_scaled_dot_product_attention(attention.scaled_dot_product_attention)
    assert "NaN" not in repr(zero)


# What a check calls right, beside something that shares no code with it.


@pytest.mark.parametrize(("k", "d_model"), [(-3, 2), (1, 6), (7, 8)])
def test_the_right_step_takes_every_position_of_the_book_to_the_one_k_on(k, d_model):
    pe, start = pattern(300, d_model), 10
    moved = pe[start:200] @ checks.step_matrix.step_matrix(k, d_model).double().T
    torch.testing.assert_close(moved, pe[start + k : 200 + k], atol=1e-5, rtol=0)


def test_looking_back_is_looking_with_the_books_weights():
    case = look_back.TASK.cases(Numbers(0))[0]
    w_q, w_k = look_back.look_back(8)
    x = attention.SinusoidalPositionalEncoding(8).table[: case.length]
    weights = ((x @ w_q) @ (x @ w_k).T / 8**0.5).softmax(-1)
    torch.testing.assert_close(look_back.attended((w_q, w_k), case).float(), weights)
    assert (weights.diagonal(-1) >= look_back.LEAST).all()


def test_a_step_of_the_decoder_is_a_step_of_the_stored_model():
    """Teacher forcing over all signs of some dates, step by step and in one call."""
    model = dates.load("narrow-additive").requires_grad_(False).double()
    whole = [date for date in dates.held_out_dates() if len(date.text) == 29][:3]  # no padding
    letters, signs = dates.encode(whole)
    encoded, decoder = model.encoder(letters), model.decoder
    due, due_weights = decoder(signs[:, :-1], encoded)
    state = decoder.first_state(encoded)
    for i in range(signs.shape[1] - 1):
        previous = decoder.embed(signs[:, i : i + 1])[:, 0]
        logits, weights, state = decoder_step.decoder_step(
            state, previous, encoded, decoder.attention, decoder.cell, decoder.w_o
        )
        torch.testing.assert_close(logits, due[:, i])
        torch.testing.assert_close(weights, due_weights[:, i])


def test_the_pre_norm_layer_has_the_numbers_of_the_trained_one():
    layer = relative_clauses.load(2).encoder.layers[0].requires_grad_(False)
    x = Numbers(0).tensor(2, 9, 32)
    heads = layer.self_attention.n_heads
    ours = pre_norm_layer.pre_norm_layer(x, layer.state_dict(), heads)
    torch.testing.assert_close(ours, layer(x)[0])


def test_a_receptive_field_is_what_a_changed_token_changes():
    """Every token of each case in turn, in layers with random weights."""
    for case in receptive_field.TASK.cases(Numbers(0)):
        mask, n_layers = case.inputs["mask"], case.inputs["n_layers"]
        due = receptive_field.receptive_field(mask, n_layers)
        assert not due.all()
        if n_layers > 3:
            continue  # nothing scales the rows, and they would grow without end
        rng = torch.Generator().manual_seed(0)
        x = torch.randn(1, len(mask), 8, generator=rng, dtype=torch.float64)
        before = x.expand(len(mask), -1, -1)
        after = before + torch.eye(len(mask), dtype=torch.float64)[..., None]
        for _ in range(n_layers):
            layer = MultiHeadAttention(8, 2).double().requires_grad_(False)
            for weight in layer.parameters():
                weight.copy_(torch.randn(weight.shape, generator=rng, dtype=torch.float64) / 3)
            before, after = (y + layer(y, mask=mask)[0] for y in (before, after))
        changed = ((after - before).abs() > 1e-11).any(-1)  # (source, token)
        assert changed.T.equal(due)
    assert not receptive_field.TASK.cases(Numbers(0))[0].inputs["mask"].diagonal().any()


@torch.no_grad()
def test_a_key_is_removed_as_by_a_mask():
    batch = who_and_whom.encode(who_and_whom.new_sentences(count=10))
    model, mask = who_and_whom.load().double(), attention.padding_mask(batch.token_ids, 0)
    x = model.embed(batch.token_ids)
    values = attention.split_heads(model.attention.w_v(x), 2)
    weights = model.attention(x, mask=mask)[1]
    for key in (1, 3):
        hidden = mask & (torch.arange(mask.shape[-1]) != key)
        moved = ((model.attention(x, mask=hidden)[1] - weights) @ values).norm(dim=-1)
        for i in (0, 5, 9):
            # Where a weight is 1 up to rounding, what it leaves to the others is lost in 1 - w.
            rows = weights[i, :, :, key] < 1 - 1e-6
            change, _ = remove_each.remove_each(weights[i], values[i])
            torch.testing.assert_close(change[..., key][rows], moved[i][rows], rtol=1e-6, atol=1e-9)


def test_a_first_token_that_is_left_out_is_one_that_a_mask_hides():
    for case in back_to_verb.TASK.cases(Numbers(0)):
        weights, objects, verbs = case.inputs.values()
        scores = weights.log()
        scores[..., 0] = -math.inf
        hidden = scores.softmax(-1)
        places = enumerate(zip(objects, verbs, strict=True))
        due = sum(hidden[sentence, :, o, v] for sentence, (o, v) in places) / len(verbs)
        torch.testing.assert_close(back_to_verb.back_to_verb(weights, objects, verbs), due)


def test_the_right_counts_are_those_of_a_layer_with_a_cache():
    for case in step_cost.TASK.cases(Numbers(0)):
        n, d_model, n_heads, d_ff = case.inputs.values()
        layer = MultiHeadAttention(d_model, n_heads, n_kv_heads=n_heads).requires_grad_(False)
        feed_forward, cache = FeedForward(d_model, d_ff), layer.new_cache(1, n)
        layer(torch.zeros(1, n - 1, d_model), cache=cache)
        token = torch.zeros(1, 1, d_model)
        with FlopCounterMode(display=False) as of_attention:
            layer(token, cache=cache)
        with FlopCounterMode(display=False) as of_feed_forward:
            feed_forward(token)
        projections, pairs, wide, kept = step_cost.step_cost(n, d_model, n_heads, d_ff).tolist()
        assert 2 * (projections + pairs) == of_attention.get_total_flops()
        assert 2 * wide == of_feed_forward.get_total_flops()
        assert kept == cache.keys.numel() + cache.values.numel() and cache.length == n


def test_the_right_loss_is_an_average_over_the_signs_that_are_written():
    for seed in range(3):
        for case in training_step.cases(Numbers(seed)):
            model, letters, signs, pad_id = case.inputs.values()
            losses = []
            for text, answer in zip(letters, signs, strict=True):
                for i in range(1, int((answer != pad_id).sum())):
                    chances = model(text[None], answer[None, :i])[0, -1].softmax(-1)
                    losses.append(-chances[answer[i]].log())
            loss, gradient = training_step.training_step(*case.copies())
            due = torch.stack(losses).mean()
            torch.testing.assert_close(loss, due)
            slopes = torch.autograd.grad(due, list(model.parameters()))
            flat = torch.cat([slope.flatten() for slope in slopes])
            torch.testing.assert_close(gradient, flat, atol=1e-5, rtol=1e-4)


def test_the_two_layers_are_attention_added_to_its_rows():
    """Beside torch's own causal attention, with the right heads; the marks are the chapter's."""
    [case] = two_heads.cases(Numbers(0))
    x = two_heads.rows_of(case.inputs["token_ids"])
    heads = [[w.double() for w in head] for head in two_heads.two_heads()]
    for w_q, w_k, w_v, w_o in heads:
        attended = F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, is_causal=True)
        x = x + attended @ w_o
    done = two_heads.layers(tuple(heads), case.inputs["token_ids"])
    torch.testing.assert_close(done.answers, x[..., written.ANSWER])

    sequences = draw_sequences(300, torch.Generator().manual_seed(4))
    kept = (sequences.token_ids[:, 1:] != sequences.token_ids[:, :1]).all(dim=1)
    marked = two_heads.marks(sequences.token_ids[kept])
    assert torch.equal(marked, sequences.determined[kept])


def test_the_right_rotary_attention_knows_the_distance_alone():
    """Rows put in front and hidden by the mask change nothing behind them."""
    for case in rotary_attention.TASK.cases(Numbers(0)):
        q, k, v, n_heads, mask = case.copies()
        seq = q.shape[1]
        moved = (F.pad(x, (0, 0, 3, 0), value=1.0) for x in (q, k, v))
        wide = F.pad(mask.expand(len(q), 1, seq, seq), (3, 0, 3, 0))
        right = rotary_attention.TASK.right
        (due, _), (got, _) = right(q, k, v, n_heads, mask), right(*moved, n_heads, wide)
        torch.testing.assert_close(got[:, 3:], due)
