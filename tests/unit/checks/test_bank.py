"""Every mistake of every bank fails its check and is named; and so are a learner's own versions."""

import math
import re
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention import causal_mask, checks, scaled_dot_product_attention
from attention.checks import (
    add_and_norm,
    additive_weights,
    attention_weights,
    causal,
    decoder_step,
    delta_write,
    dot_product,
    find_by,
    greedy,
    join_parts,
    mean_weight,
    merging,
    multihead,
    padding,
    pool_heads,
    pre_norm_layer,
    projection,
    receptive_field,
    remove_each,
    rotary_attention,
    rotate_head,
    share_bucket,
    splitting,
    step_cost,
    step_matrix,
    training_loop,
    training_step,
    two_heads,
    what_followed,
)
from attention.checks.examining import examine
from attention.checks.multihead_bank import whole

pytestmark = pytest.mark.usefixtures("as_a_reader")

TASKS = [
    module.TASK
    for module in (
        step_matrix,
        projection,
        splitting,
        merging,
        attention_weights,
        find_by,
        dot_product,
        padding,
        causal,
        multihead,
        mean_weight,
        add_and_norm,
        pre_norm_layer,
        additive_weights,
        decoder_step,
        greedy,
        join_parts,
        share_bucket,
        what_followed,
        two_heads,
        rotate_head,
        rotary_attention,
        receptive_field,
        remove_each,
        pool_heads,
        step_cost,
        delta_write,
        training_loop,
        training_step,
    )
]
MISTAKES = [
    pytest.param(task, mistake, id=f"{task.name}-{mistake.name}")
    for task in TASKS
    for mistake in task.bank
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_bank_holds_eight_mistakes_with_names_of_their_own(task):
    names = [mistake.name for mistake in task.bank]
    assert len(set(names)) >= 8
    if task is not multihead.TASK:  # the module's bank has its parts' mistakes too
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(("task", "mistake"), MISTAKES)
def test_a_mistake_fails_and_is_named(task, mistake):
    results = [examine(task, mistake.function, seed) for seed in (0, 1, 0)]
    for result in results:
        assert not result.passed
        assert result.mistakes == (mistake.name,)
        message = " ".join(result.paragraphs)
        assert mistake.why in message
        assert mistake.way_out in message
        outside = re.sub("`[^`]*`", "", message)
        assert not re.search(r"<\w", outside), "outside of code Markdown reads it as a tag"
        assert [m for m in task.bank if m.why != mistake.why and m.why in message] == []
    text = repr(results[0])
    assert text == repr(results[2]), "the same every time"
    assert text.startswith(f"check_{task.name}: not yet.\n")
    assert not re.search(r"0x[0-9a-f]|/\w+/|\.py|Mistake\(", text), "of no machine"
    assert not re.search(r"\d\.\d{4}", text), "few digits"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_two_axes_of_a_case_agree_by_accident(task):
    """d_model is the width of w on both sides, and of every input of the module."""
    for seed in range(20):
        for case in task.cases(checks.inputs.Numbers(seed)):
            for name, x in case.inputs.items():
                square = task is what_followed.TASK and name == "weights"  # self-attention
                if isinstance(x, torch.Tensor) and name not in ("w", "mask") and not square:
                    sizes = [size for size in x.shape if size > 1]
                    assert len(set(sizes)) == len(sizes), (name, tuple(x.shape))
                    assert x.dtype in (torch.float32, torch.int64)
                    assert x.unique().numel() > 1


# What a learner would write; the bank has other code for it.


def test_step_matrix():
    def textbook(k, d_model):
        matrix = torch.zeros(d_model, d_model)
        for i in range(0, d_model, 2):
            a = k / 10000 ** (i / d_model)
            matrix[i, i] = matrix[i + 1, i + 1] = math.cos(a)
            matrix[i, i + 1], matrix[i + 1, i] = -math.sin(a), math.sin(a)
        return matrix

    def exponent(i):
        def function(k, d_model):
            angles = [k / 10000 ** i(hand, d_model) for hand in range(d_model // 2)]
            blocks = [[[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]] for a in angles]
            return torch.block_diag(*torch.tensor(blocks))

        return function

    right = exponent(lambda hand, d_model: 2 * hand / d_model)

    def ten_times(k, d_model):
        turns = [torch.tensor(k / 10**i) for i in range(d_model // 2)]
        blocks = [torch.stack([t.cos(), t.sin(), -t.sin(), t.cos()]).view(2, 2) for t in turns]
        return torch.block_diag(*blocks)

    def in_halves(k, d_model):
        a = k / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        s, c = a.sin().diag(), a.cos().diag()
        return torch.cat([torch.cat([c, s], dim=1), torch.cat([-s, c], dim=1)])

    named = {
        textbook: "transposed",
        exponent(lambda hand, d_model: hand / d_model): "hands_counted",
        exponent(lambda hand, d_model: 2 * (hand + 1) / d_model): "counted_from_one",
        exponent(lambda hand, d_model: hand / (d_model // 2 - 1)): "spread_to_the_end",
        exponent(lambda hand, d_model: 0): "one_speed",
        in_halves: "halves",
        lambda k, d_model: torch.eye(d_model): "identity",
        ten_times: "ten_times_slower",
        lambda k, d_model: right(abs(k), d_model): "sign_lost",
        lambda k, d_model: right(-k, d_model): "transposed",
    }
    for function, name in named.items():
        for seed in range(3):
            assert checks.check_step_matrix(function, seed=seed).mistakes == (name,)
    assert checks.check_step_matrix(right).passed
    message = " ".join(checks.check_step_matrix(textbook).paragraphs)
    k = step_matrix.TASK.cases(checks.inputs.Numbers(0))[0].inputs["k"]
    assert f"PE(0) becomes {-math.sin(k):.2f}, {math.cos(k):.2f}, … with yours" in message
    assert f"PE({k}) begins with {math.sin(k):.2f}, {math.cos(k):.2f}." in message


def test_projection():
    def row_by_row(x, w, b=None):
        rows = [[w @ token for token in sentence] for sentence in x]
        y = torch.stack([torch.stack(sentence) for sentence in rows])
        return y if b is None else y + b

    def with_linear(x, w, b=None):
        return F.linear(x, w, b)

    def without_bias(x, w, b=None):
        return torch.einsum("bsm,mn->bsn", x, w)

    assert checks.check_projection(row_by_row).mistakes == ("transposed",)
    assert checks.check_projection(with_linear).mistakes == ("transposed",)
    assert checks.check_projection(without_bias).mistakes == ("bias_forgotten",)


def test_projection_by_rows():
    def by_rows(x, w, b=None, number=lambda x, i: x[..., i, None], row=lambda w, i: w[i]):
        projected = 0
        for i in range(w.shape[0]):
            projected = projected + number(x, i) * row(w, i)
        return projected if b is None else projected + b

    def into(start):
        def function(x, w, b=None):
            projected = start(x)
            for i in range(len(w)):
                projected += x[..., i : i + 1] * w[i]
            return projected if b is None else projected + b

        return function

    def bias_inside(x, w, b=None):
        projected = 0
        for i in range(len(w)):
            projected = projected + x[..., i : i + 1] * w[i]
            if b is not None:
                projected = projected + b
        return projected

    def bias_under_the_sum(x, w, b=None):
        rows = x[..., None] * w
        return (rows if b is None else rows + b).sum(dim=-2)

    named = {
        partial(by_rows, number=lambda x, i: x[..., i]): "last_axis_lost",
        partial(by_rows, number=lambda x, i: x.select(-1, i)): "last_axis_lost",
        into(lambda x: torch.zeros(x.shape)): "as_wide_as_x",
        into(torch.zeros_like): "as_wide_as_x",
        bias_inside: "bias_with_every_row",
        bias_under_the_sum: "bias_with_every_row",
        partial(by_rows, row=lambda w, i: w[:, i]): "transposed",
    }
    assert checks.check_projection(by_rows).passed
    for function, name in named.items():
        for seed in range(3):
            result = checks.check_projection(function, seed=seed)
            assert result.mistakes == (name,)
    assert "take `w[i]`, since `w[:, i]` is a column" in " ".join(result.paragraphs)
    assert checks.check_projection(lambda x, w, b=None: x * w).mistakes == ("entry_by_entry",)


def test_split_heads():
    def view(x, n_heads):
        return x.view(x.size(0), n_heads, x.size(1), -1)

    def forgets_to_transpose(x, n_heads):
        return x.unflatten(-1, (n_heads, -1))

    def parts(x, n_heads):
        return torch.stack(x.split(n_heads, dim=-1), dim=1)

    def front(x, n_heads):
        return torch.stack(x.chunk(n_heads, dim=-1))

    named = {
        view: "viewed_straight",
        forgets_to_transpose: "not_transposed",
        parts: "roles_swapped",
        front: "heads_first",
    }
    for function, name in named.items():
        assert checks.check_split_heads(function).mistakes == (name,)
    text = repr(checks.check_split_heads(view))
    assert "holds x[0, 0, 3], x[0, 0, 4], x[0, 0, 5]" in text  # of token 0, in token 1's row


def test_heads_from_slices():
    def slices(x, n_heads, join=torch.stack, divide=int.__floordiv__, **dim):
        d_key = divide(x.shape[-1], n_heads)
        return join([x[:, :, i * d_key : (i + 1) * d_key] for i in range(n_heads)], **dim)

    def starts(x, n_heads):
        d_key = x.shape[-1] / n_heads
        return torch.stack([x[..., i : i + d_key] for i in range(0, x.shape[-1], d_key)], dim=1)

    def parts(x, n_heads):
        return torch.stack(x.split(x.shape[-1] / n_heads, -1), dim=1)

    def dealt_out(x, n_heads):
        return torch.stack([x[:, :, i::n_heads] for i in range(n_heads)], dim=1)

    def of_tokens(x, n_heads):
        n = x.shape[1] // n_heads
        return torch.stack([x[:, i * n : (i + 1) * n] for i in range(n_heads)], dim=1)

    named = {
        partial(slices, join=torch.cat): "joined_along_the_batch",
        partial(slices, join=torch.cat, dim=1): "joined_along_the_tokens",
        partial(slices, join=torch.cat, dim=-1): "joined_again",
        lambda x, n_heads: x: "joined_again",
        partial(slices, dim=2): "not_transposed",
        dealt_out: "interleaved",
        of_tokens: "tokens_cut",
        partial(slices, join=lambda heads: heads[0]): "first_head_only",
        lambda x, n_heads: torch.stack([x] * n_heads, dim=1): "every_head_has_all",
        partial(slices, divide=int.__truediv__): "slices_of_a_float",
        starts: "range_of_a_float",
        parts: "parts_of_a_float",
    }
    assert checks.check_split_heads(partial(slices, dim=1)).passed
    for function, name in named.items():
        for seed in range(3):
            result = checks.check_split_heads(function, seed=seed)
            assert result.mistakes == (name,)
            # A way out that the exercise allows, whose slices are to be made without a view.
            ways = "torch.stack", "x[:, :, h * d_key : (h + 1) * d_key]", "//"
            assert any(way in " ".join(result.paragraphs) for way in ways), name


def test_heads_from_strides():
    def strided(x, n_heads, stride=None, size=None, divide=int.__floordiv__):
        batch, seq, d_model = x.shape
        d_key = divide(d_model, n_heads)
        stride = stride or (seq * d_model, d_key, d_model, 1)
        return x.as_strided(size or (batch, n_heads, seq, d_key), stride)

    # What chapter 3 prints of its q, (3, 6, 8), in two heads.
    printed = torch.zeros(3, 6, 8).view(3, 6, 2, 4).transpose(1, 2)
    named = {
        partial(strided, stride=printed.stride()): "strides_of_the_example",
        partial(
            strided, stride=printed.stride(), size=printed.shape
        ): "size_and_strides_of_the_example",
        partial(strided, divide=int.__truediv__): "strides_of_a_float",
    }
    assert checks.check_split_heads(strided).passed
    for function, name in named.items():
        for seed in range(3):
            assert checks.check_split_heads(function, seed=seed).mistakes == (name,)


def test_merge_heads():
    def joined(x):
        return x.flatten(1).view(x.size(0), x.size(2), -1)

    def looped(x):
        return sum(x[:, head] for head in range(x.size(1)))

    def side_by_side(x):
        return torch.cat([*x], dim=-1)

    assert checks.check_merge_heads(joined).mistakes == ("not_transposed",)
    assert checks.check_merge_heads(looped).mistakes == ("added_up",)
    assert checks.check_merge_heads(side_by_side).mistakes == ("sentences_joined",)


def test_attention_weights():
    def by_hand(query, key, divide=math.sqrt, shift=True, dim=-1):
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / divide(query.size(-1))
        if shift:
            scores = scores - scores.max(dim=dim, keepdim=True).values
        powers = torch.exp(scores)
        return powers / powers.sum(dim, keepdim=True)

    named = {
        "not_scaled": lambda q, k: by_hand(q, k, divide=lambda d_key: 1),
        "divided_by_d_key": lambda q, k: by_hand(q, k, divide=lambda d_key: d_key),
        "softmax_over_queries": lambda q, k: by_hand(q, k, dim=2),
        "softmax_over_heads": lambda q, k: by_hand(q, k, dim=1),
        "exp_overflows": lambda q, k: by_hand(q, k, shift=False),
        "no_softmax": lambda q, k: torch.einsum("bhqd,bhkd->bhqk", q / q.size(-1) ** 0.5, k),
        "query_and_key_swapped": lambda q, k: by_hand(k, q),
    }
    for name, function in named.items():
        assert checks.check_attention_weights(function).mistakes == (name,)
    message = " ".join(checks.check_attention_weights(named["no_softmax"]).paragraphs)
    inputs = checks.attention_weights.TASK.cases(checks.inputs.Numbers(0))[0].inputs
    total = named["no_softmax"](*inputs.values())[0, 0, 0].sum()
    assert f"Your first row sums to {total:.2f}." in message


def places(by, *, size=10.0, d_key=None):
    """W_q and W_k as a learner writes them, who asks for so many places further."""

    def function(words, n_positions):
        here = torch.arange(max(0, -by), n_positions - max(0, by))
        w_q = torch.zeros(len(words) + n_positions, d_key or n_positions)
        w_k = torch.zeros(len(words) + n_positions, d_key or n_positions)
        w_q[len(words) + here, here + by] = size
        w_k[len(words) + here, here] = w_k[len(words) + here + by, here + by] = size
        return w_q, w_k

    return function


def test_find_by():
    def swapped(words, n_positions):
        return places(2)(words, n_positions)[::-1]

    def the_word_by(words, n_positions):
        w_q = torch.zeros(len(words) + n_positions, 1)
        w_k = torch.zeros(len(words) + n_positions, 1)
        w_q[[words.index(word) for word in ("chased", "seen", "followed", "found")]] = 10.0
        w_k[words.index("by")] = 10.0
        return w_q, w_k

    def out_of_range(words, n_positions):
        w_q = torch.zeros(len(words) + n_positions, n_positions)
        for i in range(n_positions):
            w_q[len(words) + i, i + 2] = 10.0
        return w_q, w_q

    named = {
        swapped: "two_places_back",
        the_word_by: "at_by",
        out_of_range: "past_the_end",
        places(1): "at_by",
        places(0): "at_itself",
        places(3): "three_places_further",
        places(2, size=1.0): "too_small",
        places(2, size=0.0): "all_alike",
        lambda *sizes: (places(2)(*sizes)[0], -places(2)(*sizes)[1]): "lowest_score",
    }
    for function, name in named.items():
        assert checks.check_find_by(function).mistakes == (name,)
    message = " ".join(checks.check_find_by(places(2, size=2.0)).paragraphs)
    share = 1 / (1 + 5 * math.exp(-4 / 3))  # five other words, and 9 columns
    assert f"{share:.2f} to dogs" in message
    unnamed = checks.check_find_by(places(-1))
    assert unnamed.mistakes == ()
    assert "1.00 to was" in " ".join(unnamed.paragraphs)


def test_matrices_that_do_not_fit():
    def message(w_q, w_k):
        result = checks.check_find_by(lambda words, n_positions: (w_q, w_k))
        assert not result.passed
        return " ".join(result.paragraphs)

    d_model = len(find_by.WORDS) + 9
    assert f"A row of x has {d_model} numbers" in message(torch.zeros(3, 3), torch.zeros(3, 3))
    assert "A row of x has" in message(torch.zeros(d_model), torch.zeros(d_model))
    assert "both have as many columns" in message(torch.zeros(d_model, 3), torch.zeros(d_model, 4))
    assert "both have as many columns" in message(torch.zeros(d_model, 0), torch.zeros(d_model, 0))


def attention(divide=math.sqrt, dim=-1, fill=-1e9, turn=False, late=False, output_only=False):
    """What a learner's attention looks like, with a place for each mistake."""

    def function(query, key, value, mask=None):
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / divide(query.size(-1))
        if mask is not None and not late:
            scores = torch.where(mask ^ turn, scores, torch.tensor(fill))
        weights = F.softmax(scores, dim=dim)
        if mask is not None and late:
            weights = weights.masked_fill(mask == 0, 0)
        output = torch.einsum("bhqk,bhkd->bhqd", weights, value)
        return output if output_only else (output, weights)

    return function


@pytest.mark.parametrize("output_only", [False, True])
@pytest.mark.parametrize(
    ("mistake", "name"),
    [
        ({"divide": lambda d_key: 1}, "not_scaled"),
        ({"divide": lambda d_key: d_key}, "divided_by_d_key"),
        ({"dim": 2}, "softmax_over_queries"),
        ({"dim": 1}, "softmax_over_heads"),
        ({"dim": 0}, "softmax_over_the_batch"),
        ({"fill": 1e-9}, "forbidden_scores_zero"),
        ({"turn": True}, "mask_inverted"),
        ({"late": True}, "mask_after_softmax"),
    ],
)
def test_attention(mistake, name, output_only):
    function = attention(**mistake, output_only=output_only)
    assert checks.check_scaled_dot_product_attention(function).mistakes == (name,)


def test_the_numbers_in_a_message_are_the_learners():
    message = " ".join(checks.check_scaled_dot_product_attention(attention(dim=-2)).paragraphs)
    row, column = re.search(
        r"row 0 of head 0 sums to (\S+) and column 0 to (\S+)\.", message
    ).groups()
    inputs = dot_product.TASK.cases(checks.inputs.Numbers(0))[0].inputs
    _, weights = attention(dim=-2)(**inputs)
    assert column == "1.00"
    assert row == f"{weights[0, 0, 0].sum():.2f}" != "1.00"


def test_join_parts():
    def naive(max_a, sum_a, out_a, max_b, sum_b, out_b):
        m = torch.maximum(max_a, max_b)
        a, b = sum_a * torch.exp(max_a - m), sum_b * torch.exp(max_b - m)
        return m, a + b, (a[:, None] * out_a + b[:, None] * out_b) / (a + b)[:, None]

    def turned(max_a, sum_a, out_a, max_b, sum_b, out_b):
        m = torch.maximum(max_a, max_b)
        a, b = sum_a * torch.exp(m - max_a), sum_b * torch.exp(m - max_b)
        return m, a + b, (a[:, None] * out_a + b[:, None] * out_b) / (a + b)[:, None]

    def added(max_a, sum_a, out_a, max_b, sum_b, out_b):
        total = sum_a + sum_b
        output = (sum_a[:, None] * out_a + sum_b[:, None] * out_b) / total[:, None]
        return torch.maximum(max_a, max_b), total, output

    def mean(max_a, sum_a, out_a, max_b, sum_b, out_b):
        m, total, _ = naive(max_a, sum_a, out_a, max_b, sum_b, out_b)
        return m, total, torch.stack((out_a, out_b)).mean(0)

    def by_maximum_alone(max_a, sum_a, out_a, max_b, sum_b, out_b):
        m, total, _ = naive(max_a, sum_a, out_a, max_b, sum_b, out_b)
        a, b = torch.exp(max_a - m), torch.exp(max_b - m)
        return m, total, (a[:, None] * out_a + b[:, None] * out_b) / total[:, None]

    def lowest(max_a, sum_a, out_a, max_b, sum_b, out_b):
        m = torch.maximum(max_a, max_b).nan_to_num()
        a, b = sum_a * torch.exp(max_a - m), sum_b * torch.exp(max_b - m)
        safe = (a + b).clamp(min=1e-9)[:, None]
        return m, a + b, (a[:, None] * out_a + b[:, None] * out_b) / safe

    def against_nothing(max_a, sum_a, out_a, max_b, sum_b, out_b):
        a, b = sum_a * torch.exp(max_a), sum_b * torch.exp(max_b)
        output = (a[:, None] * out_a + b[:, None] * out_b) / (a + b)[:, None]
        return torch.maximum(max_a, max_b), a + b, output

    def from_nought(max_a, sum_a, out_a, max_b, sum_b, out_b):
        m = torch.maximum(max_a, max_b)
        m = torch.where(m.isinf(), 0.0, m)
        a, b = sum_a * torch.exp(max_a - m), sum_b * torch.exp(max_b - m)
        output = (a[:, None] * out_a + b[:, None] * out_b) / (a + b + 1e-9)[:, None]
        return m, a + b, output

    def hiding(*parts):
        m, total, output = naive(*parts)
        return m, total.nan_to_num(), output.nan_to_num()

    named = {
        naive: "nan_where_nothing_is_visible",
        hiding: "every_nan_replaced",
        turned: "wrong_sign",
        added: "not_rescaled",
        mean: "averaged",
        by_maximum_alone: "taken_as_undivided",
        lowest: "lowest_where_nothing_is_visible",
        against_nothing: "nothing_subtracted",
        from_nought: "nought_where_nothing_is_visible",
    }
    for function, name in named.items():
        for seed in range(3):
            assert checks.check_join_parts(function, seed=seed).mistakes == (name,)


def test_receptive_field():
    def steps(mask, n_layers, start=None, own=True, turn=False, number=False, count=None):
        mask = mask if mask.is_floating_point() else mask.float()
        eye = torch.eye(len(mask)).to(mask)
        layer = (mask.T if turn else mask) + (eye if own else 0)
        reached = eye
        for _ in range(n_layers if count is None else count(n_layers)):
            reached = reached @ layer
        return reached if number else reached > 0

    def power(mask, n_layers):
        return torch.linalg.matrix_power(mask.float() + torch.eye(len(mask)), n_layers)

    def at_the_end(mask, n_layers):
        reached = torch.linalg.matrix_power(mask.float(), n_layers) > 0
        return reached | torch.eye(len(mask)).bool()

    def squared(mask, n_layers):
        reached = mask.float() + torch.eye(len(mask))
        for _ in range(n_layers):
            reached = (reached @ reached > 0).float()
        return reached.bool()

    named = {
        steps: "asked_at_the_end",
        lambda mask, n_layers: steps(mask.double(), n_layers): None,
        lambda mask, n_layers: power(mask, n_layers) > 0: "a_power_above_zero",
        lambda mask, n_layers: power(mask, n_layers).bool(): "a_power_as_boolean",
        partial(steps, own=False): "without_the_row_itself",
        partial(steps, turn=True): "turned",
        partial(steps, number=True): "counted",
        partial(steps, count=lambda n: n - 1): "a_layer_too_few",
        partial(steps, count=lambda n: n + 1): "a_layer_too_many",
        partial(steps, count=lambda n: 1): "one_layer",
        at_the_end: "the_row_itself_once",
        squared: "doubled",
        lambda mask, n_layers: mask**n_layers > 0: "every_entry_to_the_power",
    }
    for function, name in named.items():
        for seed in range(3):
            expected = () if name is None else (name,)
            assert checks.check_receptive_field(function, seed=seed).mistakes == expected, name


def test_remove_each():
    def removals(weights, values, renew, size):
        output, change = weights @ values, []
        for key in range(weights.shape[-1]):
            left = weights.clone()
            left[..., key] = 0.0
            change.append(size(renew(left) @ values - output))
        change = torch.stack(change, dim=-1)
        return change, (change.argmax(-1) == weights.argmax(-1)).float()

    def renewed(left):
        return left / left.sum(-1, keepdim=True)

    def length(x):
        return x.norm(dim=-1)

    def kept(weights, values):
        change, right = removals(weights, values, lambda left: left, length)
        return change, right.mean(-1)

    def signed(weights, values):
        change, right = removals(weights, values, renewed, lambda x: x.sum(-1))
        return change, right.mean(-1)

    def of_all_heads(weights, values):
        change, right = removals(weights, values, renewed, length)
        return change, right.mean()

    def in_place(weights, values):
        output = weights @ values
        weights[..., 0] = 0.0
        return (weights @ values - output).norm(dim=-1)

    def by_formula(weights, values):
        output = weights @ values
        change = weights * (values[:, None] - output[:, :, None]).norm(dim=-1)
        return change, (change.argmax(-1) == weights.argmax(-1)).float().mean(-1)

    for function, name in (
        (kept, "not_shared_anew"),
        (by_formula, "not_divided_by_the_rest"),
        (signed, "signs_left_in"),
        (of_all_heads, "averaged_over_everything"),
    ):
        for seed in range(3):
            assert checks.check_remove_each(function, seed=seed).mistakes == (name,)
    assert "changed in place" in checks.check_remove_each(in_place).paragraphs[0]


@pytest.mark.parametrize(
    "task",
    [remove_each.TASK, join_parts.TASK, decoder_step.TASK, rotary_attention.TASK],
    ids=lambda task: task.name,
)
def test_half_an_answer_does_not_pass(task):
    first, *rest = task.parts
    for cut in (
        lambda parts: parts[0],
        lambda parts: parts[:1],
        lambda parts: (parts[0], *(None for _ in rest)),
        lambda parts: parts[:-1],
    ):
        result = examine(task, lambda *inputs, cut=cut: cut(task.right(*inputs)), 0)
        assert not result.passed
        assert result.mistakes == ()
        assert result.paragraphs[0].startswith(f"Your {first} ")
        assert f"it must return ({', '.join(task.parts)})" in result.paragraphs[0]
    wrong = examine(task, lambda *inputs: task.right(*inputs)[0] + 1, 0)
    assert "the first entry" in wrong.paragraphs[0]


def test_delta_write():
    def summed(state, key, value, beta):
        return state + beta * torch.outer(key, value)

    def replaced(state, key, value, beta):
        return state + torch.outer(key, value - key @ state)

    def turned(state, key, value, beta):
        return state + torch.outer(beta * (value - key @ state), key)

    def faded(state, key, value, beta):
        return (1 - beta) * state + beta * key.unsqueeze(1) @ value.unsqueeze(0)

    def as_in_the_papers(state, key, value, beta):
        old = state @ key
        return state - torch.outer(key, beta * old) + torch.outer(key, beta * value)

    def one_at_a_time(state, key, value, beta):
        new = state + beta * torch.outer(key, value)
        return new - beta * torch.outer(key, key @ new)

    named = {
        summed: "added_without_reading",
        replaced: "beta_forgotten",
        turned: "transposed",
        faded: "everything_fades",
        as_in_the_papers: "read_from_the_left",
        one_at_a_time: "read_after_writing",
    }
    for function, name in named.items():
        for seed in range(3):
            assert checks.check_delta_write(function, seed=seed).mistakes == (name,)


def test_delta_write_in_place():
    def in_place(state, key, value, beta):
        state += torch.outer(key, beta * (value - key @ state))
        return state

    result = checks.check_delta_write(in_place)
    assert not result.passed and "after the call state is another one" in repr(result)


def test_greedy():
    def loop(logits_of, start, end, longest, row=-1, last=False, stop=True, keep_end=True):
        written = []
        for _ in range(longest):
            read = written[-1:] or [start] if last else [start, *written]
            best = logits_of(torch.tensor(read))[row].argmax().item()
            if best == end and not keep_end:
                break
            written.append(best)
            if stop and best == end:
                break
        return torch.tensor(written)

    named = {
        "first_row": {"row": 0},
        "newest_alone": {"last": True},
        "never_stops": {"stop": False},
        "end_left_out": {"keep_end": False},
    }
    assert checks.check_greedy(loop).passed
    for name, mistake in named.items():
        assert checks.check_greedy(partial(loop, **mistake)).mistakes == (name,)

    def sampled(logits_of, start, end, longest):
        return torch.multinomial(logits_of(torch.tensor([start]))[-1].softmax(-1), 9, True)

    assert "Greedy writing draws nothing" in " ".join(checks.check_greedy(sampled).paragraphs)

    def as_the_chapter_writes(logits_of, start, end, longest):
        signs = torch.full((1, 1), start)
        for _ in range(longest):
            best = logits_of(signs)[:, -1].argmax(-1, keepdim=True)
            signs = torch.cat([signs, best], dim=1)
        return signs[0, 1:]

    assert checks.check_greedy(as_the_chapter_writes).mistakes == ("batched",)


def test_masks():
    def float_mask(token_ids, pad_id):
        return (token_ids != pad_id).unsqueeze(1).unsqueeze(2).float()

    def flat(token_ids, pad_id):
        return token_ids.ne(pad_id)

    def torchs(n_queries, n_keys=None):
        return torch.ones(n_queries, n_keys or n_queries).triu(diagonal=1).bool()

    def strict(n_queries, n_keys=None):
        n_keys = n_keys or n_queries
        past = n_keys - n_queries
        return torch.tensor([[j < i + past for j in range(n_keys)] for i in range(n_queries)])

    assert checks.check_padding_mask(float_mask).mistakes == ("as_numbers",)
    assert checks.check_padding_mask(flat).mistakes == ("no_axes",)
    assert checks.check_causal_mask(torchs).mistakes == ("inverted",)
    assert checks.check_causal_mask(strict).mistakes == ("without_itself",)


class Mine(nn.Module):
    """A module in plain torch; each mistake below is a subclass with one thing changed."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def attend(self, q, k, v, mask):
        scores = q @ k.mT / q.size(-1) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        weights = scores.softmax(-1)
        return weights @ v, weights

    def forward(self, query, key, value, mask=None):
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        heads, weights = self.attend(self.split(q), self.split(k), self.split(v), mask)
        return self.w_o(self.merge(heads)), weights


def changed(**methods):
    return type("Changed", (Mine,), methods)


def with_forward(forward):
    return changed(forward=forward)


def no_w_o(self, query, key, value, mask=None):
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    heads, weights = self.attend(q, k, v, mask)
    return self.merge(heads), weights


def tied(self, d_model, n_heads):
    Mine.__init__(self, d_model, n_heads)
    self.w_q = self.w_k


MODULES = {
    "w_o_forgotten": with_forward(no_w_o),
    "w_k_for_the_queries": changed(__init__=tied),
    "viewed_straight": changed(
        split=lambda self, x: x.view(x.size(0), self.n_heads, x.size(1), -1)
    ),
    "not_transposed": changed(merge=lambda self, x: x.reshape(x.size(0), x.size(2), -1)),
    "averaged": changed(merge=lambda self, x: x.mean(1)),
    "never_transposed": changed(
        split=lambda self, x: x.unflatten(-1, (self.n_heads, -1)),
        merge=lambda self, x: x.flatten(2),
    ),
    "softmax_over_queries": changed(attend=lambda self, *inputs: attention(dim=-2)(*inputs)),
    "not_scaled": changed(attend=lambda self, *inputs: attention(divide=lambda d_key: 1)(*inputs)),
    "mask_after_softmax": changed(attend=lambda self, *inputs: attention(late=True)(*inputs)),
    "mask_inverted": changed(attend=lambda self, *inputs: attention(turn=True)(*inputs)),
    "always_self_attention": with_forward(
        lambda self, query, key, value, mask=None: Mine.forward(self, query, query, query, mask)
    ),
    "values_from_the_keys": with_forward(
        lambda self, query, key, value, mask=None: Mine.forward(self, query, key, key, mask)
    ),
    "residual_added": with_forward(
        lambda self, query, key, value, mask=None: (
            query + Mine.forward(self, query, key, value, mask)[0]
        )
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    result = checks.check_multi_head_attention(MODULES[name])
    assert not result.passed
    assert result.mistakes == (name,)


def test_the_bank_compares_with_torchs_own_module():
    """The right one of the module's check, held against code that shares nothing with it."""
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    layers = dict(zip(("w_q", "w_k", "w_v"), zip(weights, biases, strict=True), strict=True))
    layers["w_o"] = theirs.out_proj.weight, theirs.out_proj.bias
    query, key, value = torch.randn(2, 4, 12), torch.randn(2, 5, 12), torch.randn(2, 5, 12)
    mask = causal_mask(4, 5)
    expected = theirs(query, key, value, attn_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(whole(layers, 3, query, key, value, mask), expected)


def test_two_mistakes_with_the_same_numbers_are_both_named():
    bank = checks.bank.Bank()

    @bank.mistake("One reason.", "One way out.")
    def one(x):
        return x + 1

    @bank.mistake("Another reason.", "Another way out.")
    def another(x):
        return 1 + x

    def cases(numbers):
        return [checks.inputs.Case({"x": numbers.tensor(3)})]

    task = checks.examining.Task("nothing", lambda x: x, bank, cases, {"result": "numbers"})
    result = examine(task, lambda x: x + 1.0, 0)
    assert result.mistakes == ("one", "another")
    assert "2 mistakes have this outcome" in repr(result)
    assert "One way out." in repr(result)
    assert "Another way out." in repr(result)


def test_chapter_four_begins_without_masks():
    def function(query, key, value):
        return scaled_dot_product_attention(query, key, value)

    assert checks.check_scaled_dot_product_attention(function, masks=False).passed
    assert not checks.check_scaled_dot_product_attention(function).passed
