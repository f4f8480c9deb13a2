"""What else a learner's code does: it raises, prints, changes, draws, returns another thing."""

import html
import random
import re
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import attention
from attention.checks import (
    NotYet,
    Result,
    check_causal_mask,
    check_find_by,
    check_greedy,
    check_look_back,
    check_merge_heads,
    check_multi_head_attention,
    check_padding_mask,
    check_projection,
    check_receptive_field,
    check_rotary_attention,
    check_scaled_dot_product_attention,
    check_split_heads,
    check_step_cost,
    check_training_loop,
    check_training_step,
    check_two_heads,
)
from tests.unit.checks import written

pytestmark = pytest.mark.usefixtures("as_a_reader")

# Those that read what comes back in a way of their own, and one and two tensors.
FUNCTIONS = [
    check_look_back,
    check_split_heads,
    check_find_by,
    check_scaled_dot_product_attention,
    check_two_heads,
]


def message(result: Result) -> str:
    assert not result.passed
    assert result.mistakes == ()
    assert not re.search(r"0x[0-9a-f]|/\w+/|Traceback", repr(result))
    return " ".join(repr(result).split())


def untouched(*inputs):
    raise NotImplementedError


@pytest.mark.parametrize("check", FUNCTIONS)
def test_an_untouched_stub(check):
    assert "This is still to be written: NotImplementedError in your line" in message(
        check(untouched)
    )
    assert "None came back" in message(check(lambda *inputs: None))


class Untouched(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()

    def forward(self, query, key, value, mask=None):
        raise NotImplementedError


def test_an_untouched_module():
    text = message(check_multi_head_attention(Untouched))
    assert "The layer w_q is missing; the module's layers are: none." in text
    assert "`nn.Linear(d_model, d_model)`" in text


@pytest.mark.parametrize("check", FUNCTIONS)
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1.0, 2.0], "type list, of length 2, came back"),
        (np.zeros(3), "type ndarray came back"),
        (3.0, "type float came back"),
        ("heads", "type str came back"),
        ({}, "type dict came back"),
        ((), "came back"),
        ((torch.zeros(1), torch.zeros(1), torch.zeros(1)), "came back"),
        ((1, 2), "came back"),
        (torch.zeros(0), "the shape of your"),
        (torch.tensor(1.0), "the shape of your"),
        (torch.zeros(4).to_sparse(), "the shape of your"),
    ],
)
def test_another_thing_came_back(check, value, words):
    assert words in message(check(lambda *inputs: value))


@pytest.mark.parametrize("dtype", [torch.float16, torch.complex64, torch.int64, torch.bool])
def test_another_dtype_came_back(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex numbers lose their second half
        text = message(check_merge_heads(lambda x: attention.merge_heads(x).to(dtype)))
    name = str(dtype).removeprefix("torch.")
    assert f"the dtype of your result is {name}, expected is float32." in text


def test_a_mask_of_integers():
    text = message(check_causal_mask(lambda *sizes: attention.causal_mask(*sizes).int()))
    assert "the dtype of your mask is int32, expected is bool." in text
    assert "True where a query may attend" in text
    text = message(check_receptive_field(lambda *inputs: written.receptive_field(*inputs).int()))
    assert "dtype of your heard is int32, expected is bool. True where it holds" in text


def helper(x):
    return x.view(7, 7, 7)


def test_what_was_raised_is_told_with_the_learners_line():
    text = message(check_merge_heads(lambda x: helper(x)))
    assert "RuntimeError in your line `return x.view(7, 7, 7)`: shape '[7, 7, 7]'" in text
    assert "That was with x of shape" in text


def test_a_line_of_a_library_is_not_the_learners():
    def split(x, n_heads):
        return attention.split_heads(x, 50 * n_heads)

    text = message(check_split_heads(split))
    assert "ValueError in your line `return attention.split_heads(x, 50 * n_heads)`" in text
    assert "does not divide" in text


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("division by zero"),
        AssertionError(),
        SystemExit(1),
        RecursionError("too deep"),
        KeyError("w"),
        OSError(2, "No such file", "/home/someone/numbers.txt"),
        ValueError(f"{object()!r} " + "long " * 500),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_is_raised(error):
    def function(*inputs):
        raise error

    text = message(check_split_heads(function))
    assert f"{type(error).__name__} in your line `raise error`" in text
    assert len(text) < 800


def test_a_keyboard_interrupt_is_the_learners():
    def function(*inputs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_split_heads(function)


def test_too_few_arguments():
    text = message(check_causal_mask(lambda n_queries: None))
    assert "TypeError: " in text and "takes 1 positional argument but 2 were given" in text


@pytest.mark.parametrize("check", FUNCTIONS)
def test_a_result_instead_of_a_function(check):
    for given in (torch.zeros(2), None, 3):
        text = message(check(given))
        assert f"This is a {type(given).__name__}." in text
        assert "without calling it" in text


def test_an_object_instead_of_a_class():
    for given in (attention.MultiHeadAttention(8, 2), attention.split_heads, None, 3):
        assert "This is no class." in message(check_multi_head_attention(given))
    assert "a dict that is no nn.Module" in message(check_multi_head_attention(dict))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_whichever_input_is_changed_in_place(place):
    """The values are right, and the caller's query, key or value is another one."""

    def attention_that_scales(*inputs):
        right = attention.scaled_dot_product_attention(*inputs)
        inputs[place].mul_(2.0)
        return right

    changed = ("query", "key", "value")[place]
    text = message(check_scaled_dot_product_attention(attention_that_scales))
    assert f"An input is changed in place: after the call {changed} is another one" in text
    assert f"`{changed} /= …`" in text


def test_an_input_whose_shape_is_changed_in_place():
    def reshaped(token_ids, pad_id):
        token_ids.unsqueeze_(1).unsqueeze_(1)
        return token_ids != pad_id

    assert "after the call token_ids is another one" in message(check_padding_mask(reshaped))


def test_results_that_differ_from_call_to_call():
    def with_dropout(query, key, value, mask=None):
        return attention.scaled_dot_product_attention(query, key, value, mask, dropout=0.1)

    def with_a_new_layer(x, w, b=None):
        return nn.Linear(*w.shape)(x)

    assert "Two calls with the same inputs give different results." in message(
        check_scaled_dot_product_attention(with_dropout)
    )
    assert "make no `nn.Linear` inside" in message(check_projection(with_a_new_layer))


def test_memory_that_is_used_again_is_no_change():
    memory = {}

    def merge(x):
        out = memory.setdefault(x.shape, torch.empty(x.shape[0], x.shape[2], x[0, :, 0].numel()))
        return out.copy_(attention.merge_heads(x))

    assert check_merge_heads(merge).passed


def two(w):
    """The same tensor for all eight matrices."""
    return lambda: ([w] * 4, [w] * 4)


def sampled(logits_of, start, end, longest):
    return torch.multinomial(logits_of(torch.tensor([start]))[-1].softmax(-1), 9, True)


def stepped(model, *inputs):
    loss = step(model, *inputs)
    parameters = list(model.parameters())
    slopes = torch.autograd.grad(loss, parameters, retain_graph=True)
    for parameter, slope in zip(parameters, slopes, strict=True):
        parameter.data -= 0.1 * slope
    return loss


three_back = 90 * torch.eye(32).roll(-3, dims=1)
step = written.training_step
UNNAMED = {
    check_merge_heads: {"of your result are NaN": lambda x: attention.merge_heads(x).sqrt()},
    check_step_cost: {"makes a tensor of a list of numbers.": lambda *sizes: [1, 0, 0, 0]},
    check_greedy: {"Greedy writing draws nothing": sampled},
    check_find_by: {
        "1.00 to was": partial(written.find_by, by=-1),
        "It must return (w_q, w_k)": lambda words, n: torch.zeros(2, 3, 3),
        "A row of x has": lambda words, n: (torch.zeros(3, 3), torch.zeros(3, 3)),
        "both have as many columns": lambda words, n: (
            torch.zeros(len(words) + n, 3),
            torch.zeros(len(words) + n, 4),
        ),
    },
    check_rotary_attention: {
        "first entry of your output": partial(
            written.rotary_attention, of_k=partial(written.turn, first=1)
        ),
    },
    check_look_back: {
        "two are expected: `return w_q, w_k`": torch.eye,
        "the dtype of your w_q is int64": lambda d: (torch.eye(d).long(), torch.eye(d)),
        "your w_k holds NaN or infinity": lambda d: (torch.eye(d), torch.eye(d) / 0),
        "the shape of your w_k is (8,)": lambda d: (torch.eye(d), torch.eye(d)[0]),
        "Two calls with the same inputs give": lambda d: (torch.rand(d, d), torch.eye(d)),
        "row 1 gives 0.00 of its weight": partial(
            written.look_back, q=partial(written.turned_back, steps=3)
        ),
    },
    check_training_loop: {
        "still belong to the graph": partial(written.training_loop, kept=lambda loss: loss),
        "The optimiser never takes a step": partial(written.training_loop, order="fzb"),
        "No gradient ever reaches": partial(written.training_loop, order="fzs"),
        "This is a Tensor.": torch.zeros(3),
    },
    check_training_step: {
        "the shape of your loss is": lambda model, letters, signs, pad: model(letters, signs),
        "type tuple, of length 2, came back": lambda *inputs: (step(*inputs), 1),
        "your loss is inf, expected is": lambda *inputs: step(*inputs) / 0,
        "the dtype of your loss is int64": lambda *inputs: step(*inputs).long(),
        "drawn at random, or the model is": lambda *inputs: step(*inputs) * torch.rand(()),
        "of your gradient that": lambda *inputs: 3 * step(*inputs) - 2 * step(*inputs).detach(),
        "the model is another one after the call": stepped,
    },
    check_two_heads: {
        "layer 1 gives 0.00 from": partial(
            written.two_heads, q0=(written.PLACE, written.PLACE, three_back)
        ),
        "1 of 8 matrices came back: the shape of": lambda: torch.zeros(128, 32),
        "4 of 8 matrices came back": lambda: tuple(torch.zeros(4, 128, 32)),
        "A value of type float came back": lambda: ([1.0] * 4, [2.0] * 4),
        "The head of layer 1 has w_q (96, 32), w_k (96, 32)": two(torch.zeros(96, 32)),
        "Your w_q of layer 1 has 1 axes": two(torch.zeros(128)),
        "Your w_q of layer 1 holds NaN or infinity.": two(torch.zeros(128, 128) / 0),
    },
}


@pytest.mark.parametrize(
    ("check", "words"), [(check, words) for check, rows in UNNAMED.items() for words in rows]
)
def test_what_has_no_name_has_its_words(check, words):
    assert words in message(check(UNNAMED[check][words]))


def test_an_unknown_mistake_is_told_by_its_place():
    def function(x, n_heads):
        heads = attention.split_heads(x, n_heads).clone()
        heads[1, 0, 1, 0] += 0.001
        return heads

    text = message(check_split_heads(function, seed=3))
    numbers = re.search(
        r"the first entry of your result that differs is \[1, 0, 1, 0\] of \(batch, heads, seq, "
        r"d_key\): yours (\S+), expected (\S+)\. 1 of \d+ differ, by 0\.001 at most\.",
        text,
    )
    yours, expected = map(float, numbers.groups())
    assert yours > expected


def test_a_small_difference_is_one_and_rounding_is_none():
    merge = attention.merge_heads
    assert check_merge_heads(lambda x: merge(x) * (1 + 1e-6)).passed
    assert not check_merge_heads(lambda x: merge(x) * (1 + 1e-3)).passed


class Mine(attention.MultiHeadAttention):
    """The book's module, of which each class below changes one thing."""


def test_dropout_left_on_in_evaluation():
    class LeftOn(Mine):
        def forward(self, query, key, value, mask=None):
            return F.dropout(super().forward(query, key, value, mask)[0], self.attend.dropout)

    text = message(check_multi_head_attention(LeftOn))
    assert "In evaluation mode nothing may be drawn at random. Dropout is left on" in text


def test_dropout_that_does_nothing():
    class Never(Mine):
        def forward(self, query, key, value, mask=None):
            self.attend.dropout = 0.0
            return super().forward(query, key, value, mask)

    assert "the dropout that the class takes has no effect" in message(
        check_multi_head_attention(Never)
    )


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_a_gradient_that_is_cut(name):
    class Cut(Mine):
        def forward(self, **inputs):
            inputs[name] = inputs[name].detach()
            return super().forward(**inputs)

    class ByPosition(Cut):
        def forward(self, query, key, value, mask=None):
            return super().forward(query=query, key=key, value=value, mask=mask)

    text = message(check_multi_head_attention(ByPosition))
    assert f"The values are right, and no gradient reaches {name}." in text
    assert ".detach()" in text


def test_other_gradients():
    class NoGradient(Mine):
        def forward(self, query, key, value, mask=None):
            with torch.no_grad():
                return super().forward(query, key, value, mask)

    class Frozen(Mine):
        def __init__(self, d_model, n_heads):
            super().__init__(d_model, n_heads)
            self.w_v.requires_grad_(False)

    class Halved(Mine):
        def forward(self, query, key, value, mask=None):
            output, weights = super().forward(query, key, value, mask)
            return output / 2 + output.detach() / 2, weights

    class ThroughNumpy(Mine):
        def forward(self, query, key, value, mask=None):
            output, weights = super().forward(query, key, value, mask)
            return torch.from_numpy(output.numpy()), weights

    assert "no gradient reaches the parameters" in message(check_multi_head_attention(NoGradient))
    assert "parameters ask for no gradient" in message(check_multi_head_attention(Frozen))
    assert "the gradient of query is not" in message(check_multi_head_attention(Halved))
    assert "RuntimeError in your line `return torch.from_numpy" in message(
        check_multi_head_attention(ThroughNumpy)
    )


def test_layers_that_do_not_fit():
    class Parameters(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.w_q = nn.Parameter(torch.zeros(d_model, d_model))

    class Small(Mine):
        def __init__(self, d_model, n_heads):
            super().__init__(d_model, n_heads)
            self.w_k = nn.Linear(d_model, d_model // n_heads)

    class OtherNames(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.q_proj = nn.Linear(d_model, d_model)

    assert "The layer w_q is of type Parameter" in message(check_multi_head_attention(Parameters))
    assert "The weight of w_k has the shape" in message(check_multi_head_attention(Small))
    text = message(check_multi_head_attention(OtherNames))
    assert "w_q is missing; the module's layers are: q_proj." in text
    assert "call them w_q, w_k, w_v and w_o" in text


def test_the_callers_random_numbers_and_modes_are_left_alone(capsys):
    def function(x, n_heads):
        print("here", torch.rand(()).item())
        torch.manual_seed(1)
        return attention.split_heads(x, n_heads)

    torch.manual_seed(0)
    before, python = torch.get_rng_state(), random.getstate()
    with torch.no_grad():
        result = check_split_heads(function)
        assert check_multi_head_attention(attention.MultiHeadAttention).passed
        assert check_training_loop(written.training_loop).passed
        assert not torch.is_grad_enabled()
    assert result.passed
    assert torch.equal(torch.get_rng_state(), before)
    assert random.getstate() == python
    assert capsys.readouterr().out.count("here") == 2 * 3  # printing is the learner's business


def test_the_callers_defaults_do_not_matter():
    try:
        torch.set_default_dtype(torch.float64)
        assert check_training_loop(written.training_loop).passed
        torch.set_default_device("meta")
        assert check_split_heads(attention.split_heads).passed
        assert check_causal_mask(attention.causal_mask).passed
        assert check_scaled_dot_product_attention(F.scaled_dot_product_attention).passed
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)


def test_another_seed_is_another_problem():
    asked = []

    def listening(x, n_heads):
        asked.append((tuple(x.shape), x.sum().item()))
        return attention.split_heads(x, n_heads)

    for seed in (0, 0, 1):
        assert check_split_heads(listening, seed=seed).passed
    n = len(asked) // 3
    first, again, other = asked[:n], asked[n : 2 * n], asked[2 * n :]
    assert first == again
    assert not {*first} & {*other}
    assert {shape for shape, _ in first} != {shape for shape, _ in other}


def test_the_result_shows_itself():
    result = check_split_heads(lambda x, n: x.view(x.shape[0], n, x.shape[1], -1))
    lines = repr(result).splitlines()
    assert lines[0] == "check_split_heads: not yet."
    assert all(len(line) <= 72 for line in lines)
    assert "`x.view(batch, seq, n_heads, d_key).transpose(1, 2)`" in repr(result)
    shown = result._repr_html_()
    assert "color" not in shown
    text = html.unescape(re.sub("<p>|</?(div|strong|code)>", "", shown).replace("</p>", "\n"))
    assert text.split() == repr(result).replace("`", "").split()
    escaped = Result("check", False, ("`a < b` & c",))._repr_html_()
    assert "<p><code>a &lt; b</code> &amp; c</p>" in escaped


def test_a_result_as_a_test():
    assert check_split_heads(attention.split_heads).require() is None
    wrong = check_split_heads(lambda x, n: x.view(x.shape[0], n, x.shape[1], -1))
    with pytest.raises(AssertionError) as raised:
        wrong.require()
    assert type(raised.value) is NotYet
    assert str(raised.value) == repr(wrong)
    assert "\n".join(raised.value._render_traceback_()) == repr(wrong)


def test_more_queries_than_keys_are_tried():
    """The first queries come before every key; here they see the first one."""

    def causal(n_queries, n_keys=None):
        n_keys = n_queries if n_keys is None else n_keys
        return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(max(0, n_keys - n_queries))

    text = " ".join(repr(check_causal_mask(causal)).split())
    assert not check_causal_mask(causal).passed
    assert "n_queries=" in text


class Adding(Mine):
    """Right but for one token's vector, which is added to all rows."""

    token = 0

    def forward(self, query, key, value, mask=None):
        output, weights = super().forward(query, key, value, mask)
        return output + value[:, self.token, None], weights


class AddingTheLast(Adding):
    token = -1


def test_the_past_is_not_the_future():
    """Every row may see the first token; only the last row may see the last one."""
    assert "the future leaks" not in message(check_multi_head_attention(Adding))
    assert "the future leaks" in message(check_multi_head_attention(AddingTheLast))
