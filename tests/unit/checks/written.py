"""Each exercise as a learner writes it: right as it stands, with places to go wrong.

The banks have other code for the same mistakes. A row of a table holds that a learner's version has
the outcome of the bank's, and so its name. What stands on the page of misunderstandings has no row:
`tests/chapters/test_guide.py` runs it.
"""

import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

import attention
from attention import causal_mask, checks


def as_it_is(x):
    return x


def step_matrix(k, d_model, *, power=lambda i, d: 2 * i / d, of=int, join=torch.block_diag):
    blocks = []
    for hand in range(d_model // 2):
        a = of(k) / 10000 ** power(hand, d_model)
        blocks.append([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
    return join(*torch.tensor(blocks))


def in_halves(*blocks):
    rows = torch.stack(blocks, dim=-1)
    return torch.cat([torch.cat([entry.diag() for entry in row], dim=1) for row in rows])


STEP_MATRIX = {
    "counted_from_one": {"power": lambda i, d: 2 * (i + 1) / d},
    "spread_to_the_end": {"power": lambda i, d: i / (d // 2 - 1)},
    "one_speed": {"power": lambda i, d: 0},
    "ten_times_slower": {"power": lambda i, d: i / 4},
    "sign_lost": {"of": abs},
    "halves": {"join": in_halves},
}


def projection(x, w, b=None, *, number=lambda x, i: x[..., i, None], start=None, inside=False):
    """From row to row of w."""
    b = 0 if b is None else b
    projected = start(x) if start else 0
    for i in range(len(w)):
        projected += number(x, i) * w[i] + inside * b
    return projected if inside else projected + b


PROJECTION = {
    "last_axis_lost": {"number": lambda x, i: x[..., i]},
    "as_wide_as_x": {"start": torch.zeros_like},
    "bias_with_every_row": {"inside": True},
}


def slices(x, i, d_key):
    return x[:, :, i * d_key : (i + 1) * d_key]


def split_heads(x, n_heads, *, join=torch.stack, dim=1, divide=int.__floordiv__, cut=slices):
    d_key = divide(x.shape[-1], n_heads)
    return join([cut(x, i, d_key) for i in range(n_heads)], dim)


SPLIT_HEADS = {
    "not_transposed": {"dim": 2},
    "heads_first": {"dim": 0},
    "joined_along_the_batch": {"join": torch.cat, "dim": 0},
    "joined_along_the_tokens": {"join": torch.cat},
    "joined_again": {"join": torch.cat, "dim": -1},
    "slices_of_a_float": {"divide": int.__truediv__},
    "first_head_only": {"join": lambda heads, dim: heads[0]},
    "every_head_has_all": {"cut": lambda x, i, d_key: x},
}


def split_by_strides(x, n_heads, *, stride=None, size=None, divide=int.__floordiv__):
    batch, seq, d_model = x.shape
    d_key = divide(d_model, n_heads)
    stride = stride or (seq * d_model, d_key, d_model, 1)
    return x.as_strided(size or (batch, n_heads, seq, d_key), stride)


PRINTED = torch.zeros(3, 6, 8).view(3, 6, 2, 4).transpose(1, 2)  # chapter 3's q in two heads
STRIDES = {
    "strides_of_the_example": {"stride": PRINTED.stride()},
    "size_and_strides_of_the_example": {"stride": PRINTED.stride(), "size": PRINTED.shape},
    "strides_of_a_float": {"divide": int.__truediv__},
}


def merge_heads(x, *, dim=-1, join=torch.cat, axis=1):
    return join(x.unbind(axis), dim)


MERGE_HEADS = {
    "below_each_other": {"dim": 1},
    "added_up": {"join": lambda heads, dim: sum(heads)},
    "sentences_joined": {"axis": 0},
}


def scores_of(query, key, divide):
    return torch.einsum("bhqd,bhkd->bhqk", query, key) / divide(query.size(-1))


def softmax(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)


def attention_weights(query, key, *, divide=math.sqrt, softmax=softmax, swap=False):
    return softmax(scores_of(*(key, query)[:: 1 if swap else -1], divide))


ATTENTION_WEIGHTS = {
    "not_scaled": {"divide": lambda d_key: 1},
    "softmax_over_heads": {"softmax": partial(softmax, dim=1)},
    "exp_overflows": {"softmax": lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True)},
    "no_softmax": {"softmax": as_it_is},
    "query_and_key_swapped": {"swap": True},
}


def attend(
    query, key, value, mask=None, *, divide=math.sqrt, dim=-1, fill=-1e9, by=None, late=None
):
    scores = scores_of(query, key, divide)
    if mask is not None and not late:
        scores = torch.where(by(mask) if by else mask, scores, torch.tensor(fill))
    weights = softmax(scores, dim)
    if mask is not None and late:
        weights = weights.masked_fill(mask == 0, 0)
    return weights @ value, weights


ATTEND = {
    "not_scaled": {"divide": lambda d_key: 1},
    "divided_by_d_key": {"divide": lambda d_key: d_key},
    "softmax_over_queries": {"dim": 2},
    "softmax_over_heads": {"dim": 1},
    "softmax_over_the_batch": {"dim": 0},
    "forbidden_scores_zero": {"fill": 1e-9},
    "mask_inverted": {"by": torch.logical_not},
}


class Module(nn.Module):
    """In plain torch, as chapter 7 builds it."""

    def __init__(self, d_model, n_heads, bias=True):
        super().__init__()
        self.n_heads = n_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def attend(self, q, k, v, mask):
        return attend(q, k, v, mask)

    def heads(self, query, key, value, mask=None):
        q, k, v = (
            self.split(self.w_q(query)),
            self.split(self.w_k(key)),
            self.split(self.w_v(value)),
        )
        return self.attend(q, k, v, mask)

    def forward(self, query, key, value, mask=None):
        output, weights = self.heads(query, key, value, mask)
        return self.w_o(self.merge(output)), weights


def tied(self, d_model, n_heads):
    Module.__init__(self, d_model, n_heads)
    self.w_q = self.w_k


def attends(**changes):
    return lambda self, q, k, v, mask: attend(q, k, v, mask, **changes)


def called(inputs):
    return lambda self, q, k, v, mask=None: Module.forward(self, *inputs(q, k, v), mask)


MULTI_HEAD = {
    "w_k_for_the_queries": {"__init__": tied},
    "viewed_straight": {"split": lambda self, x: x.view(len(x), self.n_heads, x.size(1), -1)},
    "not_transposed": {"merge": lambda self, x: x.reshape(x.size(0), x.size(2), -1)},
    "never_transposed": {
        "split": lambda self, x: x.unflatten(-1, (self.n_heads, -1)),
        "merge": lambda self, x: x.flatten(2),
    },
    "softmax_over_queries": {"attend": attends(dim=2)},
    "mask_after_softmax": {"attend": attends(late=True)},
    "always_self_attention": {"forward": called(lambda q, k, v: (q, q, q))},
    "values_from_the_keys": {"forward": called(lambda q, k, v: (q, k, k))},
    "residual_added": {
        "forward": lambda self, q, k, v, mask=None: q + Module.forward(self, q, k, v, mask)[0]
    },
}


def padding_mask(ids, pad, *, axes=(None, None), kind=torch.bool):
    rows = torch.tensor([[i != pad for i in row] for row in ids.tolist()], dtype=kind)
    return rows[:, *axes]


PADDING = {"as_numbers": {"kind": torch.float32}, "no_axes": {"axes": ()}}


def causal(n_queries, n_keys=None, *, sees=lambda i, j, past: j <= i + past):
    n_keys = n_keys or n_queries
    past = n_keys - n_queries
    return torch.tensor([[sees(i, j, past) for j in range(n_keys)] for i in range(n_queries)])


CAUSAL = {
    "inverted": {"sees": lambda i, j, past: j > i + past},
    "aligned_top_left": {"sees": lambda i, j, past: j <= i},
    "only_itself": {"sees": lambda i, j, past: j == i + past},
}


def find_by(words, n_positions, *, by=2, size=10.0, sign=1, fits=lambda i, n: 0 <= i < n):
    w_q = torch.zeros(len(words) + n_positions, n_positions)
    w_k = torch.zeros(len(words) + n_positions, n_positions)
    for i in range(n_positions):
        w_k[len(words) + i, i] = sign * size
        if fits(i + by, n_positions):
            w_q[len(words) + i, i + by] = size
    return w_q, w_k


FIND_BY = {
    "at_itself": {"by": 0},
    "three_places_further": {"by": 3},
    "two_places_back": {"by": -2},
    "past_the_end": {"fits": lambda i, n: True},
    "too_small": {"size": 1.0},
    "all_alike": {"size": 0.0},
    "lowest_score": {"sign": -1},
}


def greedy(logits_of, start, end, longest, *, row=-1, stop=True, keep_end=True):
    written = []
    for _ in range(longest):
        best = logits_of(torch.tensor([start, *written]))[row].argmax().item()
        if best == end and not keep_end:
            break
        written.append(best)
        if stop and best == end:
            break
    return torch.tensor(written)


GREEDY = {
    "first_row": {"row": 0},
    "never_stops": {"stop": False},
    "end_left_out": {"keep_end": False},
}


def over(x, total):
    return x / torch.where(total > 0, total, 1.0)


def join_parts(*parts, base=None, sign=1, given=None, divide=over, after=as_it_is):
    max_a, sum_a, out_a, max_b, sum_b, out_b = parts
    m = torch.maximum(max_a, max_b)
    b = base(m) if base else m.clamp(min=-1e9)
    part_a, part_b = sum_a * torch.exp(sign * (max_a - b)), sum_b * torch.exp(sign * (max_b - b))
    total = part_a + part_b
    output = divide(part_a[:, None] * out_a + part_b[:, None] * out_b, total[:, None])
    return b if given else m, after(total), after(output)


JOIN_PARTS = {
    "every_nan_replaced": {"base": as_it_is, "divide": torch.div, "after": torch.nan_to_num},
    "wrong_sign": {"base": as_it_is, "sign": -1, "divide": torch.div},
    "nothing_subtracted": {"base": torch.zeros_like, "divide": torch.div},
    "lowest_where_nothing_is_visible": {"base": torch.nan_to_num, "given": True},
    "nought_where_nothing_is_visible": {
        "base": lambda m: torch.where(m.isinf(), 0.0, m),
        "given": True,
    },
}


def receptive_field(
    mask, n_layers, *, kind=torch.float64, turn=False, end=torch.gt, count=lambda n: n
):
    eye = torch.eye(len(mask), dtype=kind)
    layer = (mask.T if turn else mask).to(kind) + eye
    reached = eye
    for _ in range(count(n_layers)):
        reached = reached @ layer
    return end(reached, 0)


RECEPTIVE_FIELD = {
    "asked_at_the_end": {"kind": torch.float32},
    "turned": {"turn": True},
    "counted": {"end": lambda reached, nought: reached.float()},
    "a_layer_too_few": {"count": lambda n: n - 1},
    "a_layer_too_many": {"count": lambda n: n + 1},
    "one_layer": {"count": lambda n: 1},
}


def remove_each(weights, values, *, size=lambda x: x.norm(dim=-1)):
    output, change = weights @ values, []
    for key in range(weights.shape[-1]):
        left = weights.clone()
        left[..., key] = 0.0
        change.append(size((left / left.sum(-1, keepdim=True)) @ values - output))
    change = torch.stack(change, dim=-1)
    return change, (change.argmax(-1) == weights.argmax(-1)).float().mean(-1)


REMOVE_EACH = {"signs_left_in": {"size": lambda x: x.sum(-1)}}


def delta_write(state, key, value, beta, *, read=lambda key, state: key @ state):
    """S (I - β k kᵀ) + β v kᵀ, as the papers write it, of a state with a row for each key."""
    return state - beta * torch.outer(key, read(key, state)) + beta * torch.outer(key, value)


DELTA_WRITE = {"read_from_the_left": {"read": lambda key, state: state @ key}}


def add_and_norm(
    x, output, gain, bias, *, add=torch.add, over=-1, keepdim=True, mean=torch.mean, more=0
):
    rows = add(x, output)
    centred = rows - mean(rows, over, keepdim=True)
    variance = centred.square().mean(over, keepdim=keepdim)
    return gain * centred / (variance + 1e-5).sqrt() + bias


ADD_AND_NORM = {
    "without_keepdim": {"keepdim": False},
    "over_the_batch": {"over": 0},
    "over_a_sentence": {"over": (1, 2)},
    "over_everything": {"over": (0, 1, 2)},
    "root_mean_square": {"mean": lambda rows, over, keepdim: 0},
    "without_the_residual": {"add": lambda x, output: output},
}


def additive_weights(
    query,
    key,
    w_q,
    w_k,
    v_a,
    *,
    before=as_it_is,
    plus=torch.add,
    squash=torch.tanh,
    project=F.linear,
    project_key=F.linear,
    axes=lambda q, k: (q.unsqueeze(2), k.unsqueeze(1)),
):
    q, k = axes(before(project(query, w_q)), before(project_key(key, w_k)))
    return F.softmax(torch.einsum("bqkh,h->bqk", squash(plus(q, k)), v_a), dim=2)


ADDITIVE_WEIGHTS = {
    "tanh_of_each_part": {"before": torch.tanh, "squash": as_it_is},
    "multiplied": {"plus": torch.mul},
    "not_paired": {"axes": lambda q, k: (q, k)},
    "paired_on_one_side": {"axes": lambda q, k: (q.unsqueeze(2), k)},
    "not_transposed": {"project": torch.matmul},
    "keys_not_transposed": {"project_key": torch.matmul},
}


def decoder_step(
    state,
    previous,
    encoded,
    attention,
    gru,
    to_logits,
    *,
    query=lambda state, previous: state.unsqueeze(1),
    bring=lambda context, encoded: context.squeeze(1),
    step=lambda gru, previous, context, state: gru(torch.cat([previous, context], 1), state),
    read=lambda old, new, context, previous: [new, context, previous],
    give=lambda logits, weights, old, new: (logits, weights.squeeze(1), new),
):
    context, weights = attention(query(state, previous), encoded)
    context = bring(context, encoded)
    new = step(gru, previous, context, state)
    return give(to_logits(torch.cat(read(state, new, context, previous), 1)), weights, state, new)


def give_softmax(logits, weights, old, new):
    return logits.softmax(1), weights.squeeze(1), new


DECODER_STEP = {
    "no_axis_for_the_query": {"query": lambda s, p: s},
    "axis_in_front_of_the_batch": {"query": lambda s, p: s.unsqueeze(0)},
    "asks_with_the_sign": {"query": lambda s, p: p.unsqueeze(1)},
    "context_with_the_axis_of_the_query": {"bring": lambda c, e: c},
    "context_of_the_last_row": {"bring": lambda c, e: e[:, e.shape[1] - 1]},
    "context_is_the_plain_mean": {"bring": lambda c, e: sum(e.unbind(1)) / e.size(1)},
    "context_in_front_of_the_sign": {"step": lambda gru, p, c, s: gru(torch.hstack((c, p)), s)},
    "gru_from_zeros": {"step": lambda gru, p, c, s: gru(torch.hstack((p, c)))},
    "gru_arguments_swapped": {"step": lambda gru, p, c, s: gru(s, torch.hstack((p, c)))},
    "gru_without_the_context": {"step": lambda gru, p, c, s: gru(p, s)},
    "logits_of_the_old_state": {"read": lambda old, new, c, p: [old, c, p]},
    "logits_with_the_state_last": {"read": lambda old, new, c, p: [p, c, new]},
    "logits_without_the_sign": {"read": lambda old, new, c, p: [new, c]},
    "logits_without_the_context": {"read": lambda old, new, c, p: [new, p]},
    "logits_of_the_state_alone": {"read": lambda old, new, c, p: [new]},
    "old_state_returned": {"give": lambda logits, w, old, new: (logits, w.squeeze(1), old)},
    "softmax_of_the_logits": {"give": give_softmax},
    "axis_of_the_query_left": {"give": lambda logits, w, old, new: (logits, w, new)},
    "state_in_front_of_the_weights": {"give": lambda logits, w, old, new: (logits, new)},
}


def turned_back(d_model, steps=1, *, angle=None):
    """The matrix of chapter 2 that turns each hand, with loops."""
    w = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(steps / 10000 ** (i / d_model) if angle is None else angle)
        w[i, i] = w[i + 1, i + 1] = a.cos()
        w[i, i + 1], w[i + 1, i] = a.sin(), -a.sin()
    return w


def look_back(d_model, *, q=turned_back, k=torch.eye, loud=400.0):
    return loud * q(d_model), k(d_model)


LOOK_BACK = {
    "looks_ahead": {"q": torch.eye, "k": turned_back},
    "looks_at_itself": {"k": turned_back},
    "looks_two_back": {"q": partial(turned_back, steps=2)},
    "not_sharp": {"loud": 80.0},  # enough at a d_model of 8 alone
    "negative": {"loud": -400.0},
    "one_speed": {"q": partial(turned_back, angle=1.0)},
    "one_hand": {"k": lambda d: torch.diag((torch.arange(d) < 2).float())},
    "all_alike": {"loud": 0.0},
    "always_eight": {"q": lambda d: turned_back(8), "k": lambda d: torch.eye(8)},
}


def pre_norm_layer(
    x,
    w,
    n_heads,
    *,
    variance={"correction": 0},  # noqa: B006
    scale=lambda d_model, d_key: d_key**0.5,
    merge=lambda attended: attended.transpose(1, 2).flatten(2),
    turn=lambda weight: weight.T,
    bias=1,
    add=lambda rows, normed: rows,
    relu=F.relu,
    second_norm="feed_forward_norm",
    read=lambda x, h: h,
):
    def norm(rows, name):
        mean = rows.mean(-1, keepdim=True)
        std = (rows.var(-1, keepdim=True, **variance) + 1e-5) ** 0.5
        return (rows - mean) / std * w[name + ".weight"] + w[name + ".bias"]

    batch, seq, d_model = x.shape
    d_key = d_model // n_heads
    normed = norm(x, "self_attention_norm")

    def heads(name):
        weight, b = w[f"self_attention.{name}.weight"], w[f"self_attention.{name}.bias"]
        projected = normed @ turn(weight) + bias * b
        return projected.view(batch, seq, n_heads, d_key).transpose(1, 2)

    q, k, v = heads("w_q"), heads("w_k"), heads("w_v")
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / scale(d_model, d_key)
    merged = merge(F.softmax(scores, dim=-1) @ v)
    output = merged @ turn(w["self_attention.w_o.weight"]) + bias * w["self_attention.w_o.bias"]
    h = add(x, normed) + output
    normed = norm(read(x, h), second_norm)
    hidden = normed @ w["feed_forward.w_1.weight"].T + bias * w["feed_forward.w_1.bias"]
    made = relu(hidden) @ w["feed_forward.w_2.weight"].T + bias * w["feed_forward.w_2.bias"]
    return add(h, normed) + made


PRE_NORM_LAYER = {
    "variance_of_a_sample": {"variance": {}},
    "divided_by_root_d_model": {"scale": lambda d_model, d_key: d_model**0.5},
    "not_scaled": {"scale": lambda d_model, d_key: 1},
    "merged_without_transpose": {"merge": lambda x: x.reshape(x.shape[0], x.shape[2], -1)},
    "attentions_weights_not_transposed": {"turn": as_it_is},
    "without_biases": {"bias": 0},
    "without_relu": {"relu": as_it_is},
    "one_norm_for_both": {"second_norm": "self_attention_norm"},
    "feed_forward_reads_x": {"read": lambda x, h: x},
}


def turn(x, sign=1, first=0, width=None, seq=None, count=2):
    """From pair to pair, as chapter 10 does."""
    place = torch.arange(first, first + (seq or x.shape[-2]))
    components = []
    for i in range(x.shape[-1] // 2):
        angle = sign * place * 10000 ** (-count * i / (width or x.shape[-1]))
        a, b = x[..., 2 * i], x[..., 2 * i + 1]
        components.append(a * angle.cos() - b * angle.sin())
        components.append(a * angle.sin() + b * angle.cos())
    return torch.stack(components, dim=-1)


def rotary_attention(
    q,
    k,
    v,
    n_heads,
    mask,
    *,
    before=as_it_is,
    of_q=turn,
    of_k=turn,
    of_v=as_it_is,
    after=as_it_is,
    root=lambda d_model, d_key: d_key,
    seen=as_it_is,
):
    d_model = q.shape[-1]
    q, k = before(q), before(k)
    q, k, v = (x.view(*x.shape[:2], n_heads, -1).transpose(1, 2) for x in (q, k, v))
    scores = of_q(q) @ of_k(k).mT / math.sqrt(root(d_model, q.shape[-1]))
    weights = F.softmax(scores.masked_fill(~seen(mask), -math.inf), dim=-1)
    return after((weights @ of_v(v)).transpose(1, 2).flatten(2)), weights


def both(function):
    return {"of_q": function, "of_k": function}


ROTARY_ATTENTION = {
    "values_turned_too": {"of_v": turn},
    "turned_before_the_split": {"before": turn, **both(as_it_is)},
    "only_queries_turned": {"of_k": as_it_is},
    "only_keys_turned": {"of_q": as_it_is},
    "both_turned_backwards": both(lambda x: turn(x, sign=-1)),
    "pairs_from_two_halves": both(lambda x: attention.Rotary(x.shape[-1], halves=True)(x, x)[0]),
    "not_turned": both(as_it_is),
    "places_of_the_batch": both(lambda x: turn(x, seq=len(x))),
    "places_of_the_heads": both(lambda x: turn(x, seq=x.size(1))),
    "angles_of_d_model": both(lambda x: turn(x, width=x.size(1) * x.size(-1))),
    "exponent_counts_pairs": both(lambda x: turn(x, count=1)),
    "merged_output_turned": {"after": turn, **both(as_it_is)},
    "scaled_by_d_model": {"root": lambda d_model, d_key: d_model},
    "unscaled": {"root": lambda d_model, d_key: 1},
    "mask_inverted": {"seen": torch.logical_not},
    "mask_left_out": {"seen": torch.ones_like},
}


def at_the_verb(logits, verb, who):
    return F.cross_entropy(torch.stack([row[i] for row, i in zip(logits, verb)]), who)  # noqa: B905


def training_loop(
    model,
    optimiser,
    batches,
    *,
    order="zfbs",
    mode=nn.Module.train,
    loss_of=at_the_verb,
    kept=torch.Tensor.item,
    total=False,
    end="",
    some=as_it_is,
):
    """order: the letters of zero_grad, forward pass, backward and step, as they come."""
    mode(model)
    losses, before = [], 0
    for token_ids, verb, who in some(batches):
        for letter in order:
            if letter == "z":
                optimiser.zero_grad()
            elif letter == "f":
                loss = loss_of(model(token_ids), verb, who) + before
            elif letter == "b":
                loss.backward()
            else:
                optimiser.step()
        before = loss if total else 0
        losses.append(kept(loss))
    if end:
        optimiser.step()
    return torch.tensor(losses) if isinstance(losses[0], float) else torch.stack(losses)


def everywhere(logits, verb, who):
    return F.cross_entropy(logits.flatten(0, 1), who.repeat_interleave(logits.shape[1]))


TRAINING_LOOP = {
    "not_cleared": {"order": "fbs", "kept": as_it_is},  # a graph too, the smaller mistake
    "one_batch_late": {"order": "szfb"},
    "changed_before_backward": {"order": "fszb"},
    "running_total": {"total": True},
    "one_step_at_the_end": {"order": "fb", "end": "s"},
    "in_evaluation_mode": {"mode": nn.Module.eval},
    "first_batch_alone": {"some": lambda batches: list(batches)[:1]},
    "at_the_first_verbs_place": {
        "loss_of": lambda logits, verb, who: F.cross_entropy(logits[:, int(verb[0])], who)
    },
    "of_the_last_row": {
        "loss_of": lambda logits, verb, who: F.cross_entropy(logits[:, logits.shape[1] - 1], who)
    },
    "of_all_rows": {"loss_of": everywhere},
    "three_axes": {"loss_of": lambda logits, verb, who: F.cross_entropy(logits[:, verb], who)},
    "softmax_twice": {"loss_of": lambda logits, *rest: at_the_verb(logits.softmax(-1), *rest)},
    "summed": {"loss_of": lambda logits, verb, who: len(verb) * at_the_verb(logits, verb, who)},
}


def training_step(
    model,
    letters,
    signs,
    pad_id,
    *,
    mask=lambda n: torch.ones(n, n).tril() == 1,
    reads=slice(None, -1),
    answers=slice(1, None),
    back=as_it_is,
    count=None,
    flat=lambda logits: logits.flatten(0, 1),
    **options,
):
    goes_in, wanted = signs[:, reads], signs[:, answers]
    logits = model(letters, goes_in, mask(goes_in.shape[1]))
    if count:
        taken = logits.log_softmax(-1).gather(-1, wanted[..., None])[..., 0]
        return count(-taken * (wanted != pad_id), wanted != pad_id)
    logits = flat(logits)
    wanted = wanted.flatten() if logits.ndim == 2 else wanted
    return back(F.cross_entropy(logits, wanted, **{"ignore_index": pad_id, **options}))


def to_be_added(n):
    return torch.zeros(n, n).masked_fill(~causal_mask(n), -torch.inf)


TRAINING_STEP = {
    "no_mask": {"mask": lambda n: None},
    "inverted": {"mask": lambda n: torch.ones(n, n).triu(1) == 1},
    "transposed": {"mask": lambda n: torch.ones(n, n).triu() == 1},
    "without_itself": {"mask": lambda n: torch.arange(n) < torch.arange(n)[:, None]},
    "mask_to_be_added": {"mask": to_be_added},
    "mask_too_long": {"mask": lambda n: causal_mask(n + 1)},
    "not_shifted": {"answers": slice(None, -1)},
    "whole_not_shifted": {"reads": slice(None), "answers": slice(None)},
    "shifted_the_wrong_way": {"reads": slice(1, None), "answers": slice(None, -1)},
    "shifted_twice": {"reads": slice(None, -2), "answers": slice(2, None)},
    "a_row_too_many": {"reads": slice(None)},
    "padding_counted": {"ignore_index": -1},
    "zero_left_out": {"ignore_index": 0},
    "mean_over_padding": {"count": lambda losses, real: losses.mean()},
    "summed": {"count": lambda losses, real: losses.sum()},
    "mean_of_means": {"count": lambda losses, real: (losses.sum(1) / real.sum(1)).mean()},
    "not_flattened": {"flat": as_it_is},
    "softmax_first": {"flat": lambda logits: logits.flatten(0, 1).softmax(-1)},
    "detached": {"back": torch.Tensor.detach},
    "backward_called": {"back": lambda loss: loss.backward() or loss},
}

TOKEN, PLACE, COPY, ANSWER = (slice(32 * i, 32 * i + 32) for i in range(4))
EYE, BACK = torch.eye(32), torch.diag(torch.ones(31), -1)


def two_heads(**changes):
    """Two heads, square, entry by entry; `q0=(rows, columns, what)`."""
    entries = {
        "q0": (PLACE, PLACE, 200 * BACK),
        "k0": (PLACE, PLACE, EYE),
        "v0": (TOKEN, TOKEN, EYE),
        "o0": (TOKEN, COPY, EYE),
        "q1": (TOKEN, TOKEN, 200 * EYE),
        "k1": (COPY, TOKEN, EYE),
        "v1": (TOKEN, TOKEN, EYE),
        "o1": (TOKEN, ANSWER, EYE),
    } | changes
    made = torch.zeros(8, 128, 128)
    for w, (rows, columns, what) in zip(made, entries.values(), strict=True):
        w[rows, columns] = what
    return list(made[:4]), list(made[4:])


TWO_HEADS = {
    "looks_ahead": {"q0": (PLACE, PLACE, 90 * EYE), "k0": (PLACE, PLACE, BACK)},
    "looks_two_back": {"k0": (PLACE, PLACE, BACK.T)},
    "layer_1_too_quiet": {"q0": (PLACE, PLACE, BACK)},
    "looks_away": {"q0": (PLACE, PLACE, -70 * BACK)},
    "layer_1_all_alike": {"k0": (PLACE, TOKEN, EYE)},
    "shifts_tokens": {"q0": (TOKEN, TOKEN, 90 * BACK), "k0": (TOKEN, TOKEN, EYE)},
    "layer_1_writes_nothing": {"o0": (COPY, TOKEN, EYE)},
    "overwrites_the_token": {"o0": (TOKEN, TOKEN, EYE)},
    "hands_on_the_place": {"v0": (PLACE, TOKEN, EYE)},
    "query_and_key_swapped": {"q1": (COPY, TOKEN, 90 * EYE), "k1": (TOKEN, TOKEN, EYE)},
    "layer_2_all_alike": {"k1": (ANSWER, TOKEN, EYE)},
    "layer_2_too_quiet": {"q1": (TOKEN, TOKEN, EYE)},
    "layer_2_writes_nothing": {"o1": (ANSWER, TOKEN, EYE)},
    "layer_2_writes_elsewhere": {"o1": (TOKEN, COPY, EYE)},
    "answers_with_the_copy": {"v1": (COPY, TOKEN, EYE)},
    # Two mistakes: what comes first on the way is named.
    "looks_at_itself": {"q0": (PLACE, PLACE, 50 * EYE), "v1": (COPY, TOKEN, EYE)},
}


def what_followed(weights, token_ids, *, key=1, first=False, start=0):
    rows = []
    for b, ids in enumerate(token_ids.tolist()):
        for i in range(len(ids)):
            before = [j for j in range(start, i) if ids[j] == ids[i]]
            if before:
                rows.append(weights[b, :, i, before[0 if first else -1] + key])
    return torch.stack(rows).mean(0)


WHAT_FOLLOWED = {
    "what_came_before": {"key": -1},
    "first_occurrence": {"first": True},
    "place_0_left_out": {"start": 1},
}


def without_the_first(row):
    rest = row.clone()
    rest[..., 0] = 0
    return rest / rest.sum(-1, keepdim=True)


def back_to_verb(
    weights, objects, verbs, *, row=lambda heads, o: heads[:, o], rest=without_the_first, dim=0
):
    """Sentence by sentence, with the first weight at 0 where the solution cuts it off."""
    places = zip(weights, objects, verbs, strict=True)
    return torch.stack([rest(row(heads, o))[:, v] for heads, o, v in places]).mean(dim)


BACK_TO_VERB = {
    "roles_swapped": {"row": lambda heads, o: heads[:, :, o]},
    "over_all_queries": {"row": lambda heads, o: heads.mean(1)},
    "the_first_row_as_well": {"row": lambda heads, o: without_the_first(heads).mean(1)},
    "softmax_again": {"rest": lambda row: without_the_first(row.softmax(-1))},
    "averaged_over_the_heads": {"dim": 1},
}

WRITTEN = [
    (checks.check_step_matrix, step_matrix, STEP_MATRIX),
    (checks.check_projection, projection, PROJECTION),
    (checks.check_look_back, look_back, LOOK_BACK),
    (checks.check_split_heads, split_heads, SPLIT_HEADS),
    (checks.check_split_heads, split_by_strides, STRIDES),
    (checks.check_merge_heads, merge_heads, MERGE_HEADS),
    (checks.check_attention_weights, attention_weights, ATTENTION_WEIGHTS),
    (checks.check_find_by, find_by, FIND_BY),
    (checks.check_scaled_dot_product_attention, attend, ATTEND),
    (checks.check_padding_mask, padding_mask, PADDING),
    (checks.check_causal_mask, causal, CAUSAL),
    (checks.check_multi_head_attention, Module, MULTI_HEAD),
    (checks.check_greedy, greedy, GREEDY),
    (checks.check_join_parts, join_parts, JOIN_PARTS),
    (checks.check_receptive_field, receptive_field, RECEPTIVE_FIELD),
    (checks.check_remove_each, remove_each, REMOVE_EACH),
    (checks.check_delta_write, delta_write, DELTA_WRITE),
    (checks.check_add_and_norm, add_and_norm, ADD_AND_NORM),
    (checks.check_additive_weights, additive_weights, ADDITIVE_WEIGHTS),
    (checks.check_decoder_step, decoder_step, DECODER_STEP),
    (checks.check_pre_norm_layer, pre_norm_layer, PRE_NORM_LAYER),
    (checks.check_rotary_attention, rotary_attention, ROTARY_ATTENTION),
    (checks.check_training_loop, training_loop, TRAINING_LOOP),
    (checks.check_training_step, training_step, TRAINING_STEP),
    (checks.check_two_heads, two_heads, TWO_HEADS),
    (checks.check_what_followed, what_followed, WHAT_FOLLOWED),
    (checks.check_back_to_verb, back_to_verb, BACK_TO_VERB),
]
