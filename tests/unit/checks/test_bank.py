"""Every mistake of every bank fails its check and is named, and of no two the words are alike."""

import importlib
import pkgutil
import re

import pytest
import torch
from torch import nn

from attention import causal_mask, checks, scaled_dot_product_attention
from attention.checks import back_to_verb, dot_product, look_back, multihead, what_followed
from attention.checks.bank import Bank, Mistake
from attention.checks.examining import Task, examine
from attention.checks.multihead_bank import whole

pytestmark = pytest.mark.usefixtures("as_a_reader")

MODULES = [
    importlib.import_module(f"{checks.__name__}.{module.name}")
    for module in pkgutil.iter_modules(checks.__path__)
]
TASKS = [module.TASK for module in MODULES if hasattr(module, "TASK")]
SELF_ATTENTION = (back_to_verb.TASK, what_followed.TASK)  # as many queries as keys
TRAINS = {"two_heads", "training_loop", "training_step"}  # each answer of these is dear
MISTAKES = [
    pytest.param(
        task,
        mistake,
        id=f"{task.name}-{mistake.name}",
        marks=[pytest.mark.slow] * (task.name in TRAINS),
    )
    for task in TASKS
    for mistake in task.bank
]


def answer(task: Task, function, seed):
    """The check's answer. Of functions that get what the cases hold, which a learner need not."""
    if task is look_back.TASK:  # which looks at the weights instead of numbers
        return checks.check_look_back(function, seed=seed)
    return examine(task, function, seed)


def test_every_check_has_its_task():
    names = {f"check_{task.name}" for task in TASKS}
    assert names == {name for name in checks.__all__ if name.startswith("check_")}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_bank_holds_eight_mistakes_with_names_of_their_own(task):
    names = [mistake.name for mistake in task.bank]
    assert len(set(names)) >= 8
    if task is not multihead.TASK:  # the module's bank has its parts' mistakes too
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(("task", "mistake"), MISTAKES)
def test_a_mistake_fails_and_is_named(task, mistake):
    for seed in (1, 0):
        result = answer(task, mistake.function, seed)
        assert not result.passed
        assert result.mistakes == (mistake.name,)
        message = " ".join(result.paragraphs)
        assert mistake.why in message
        assert mistake.way_out in message
        outside = re.sub("`[^`]*`", "", message)
        assert not re.search(r"<\w", outside), "outside of code Markdown reads it as a tag"
        assert [m for m in task.bank if m.why != mistake.why and m.why in message] == []
    text = repr(result)
    assert text.startswith(f"check_{task.name}: not yet.\n")
    assert not re.search(r"0x[0-9a-f]|/\w+/|\.py|Mistake\(", text), "of no machine"
    assert not re.search(r"\d\.\d{4}", text), "few digits"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_check_says_the_same_every_time(task):
    once, again = (repr(answer(task, task.bank[0].function, 0)) for _ in range(2))
    assert once == again


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_two_axes_of_a_case_agree_by_accident(task):
    """d_model is the width of w on both sides, and of every input of the module."""
    for seed in range(20):
        for case in task.cases(checks.inputs.Numbers(seed)):
            for name, x in case.inputs.items():
                square = task in SELF_ATTENTION and name == "weights"
                if isinstance(x, torch.Tensor) and name not in ("w", "mask") and not square:
                    sizes = [size for size in x.shape if size > 1]
                    assert len(set(sizes)) == len(sizes), (name, tuple(x.shape))
                    assert x.dtype in (torch.float32, torch.int64)
                    assert x.unique().numel() > 1


@pytest.mark.parametrize(
    "task",
    [
        task
        for task in TASKS
        if len(task.parts) > 1 and not task.first_is_enough and task is not look_back.TASK
    ],
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
        assert re.match(
            rf"Your ({first} is|{first} and [^:]+ are) right\. "
            r"What is missing (is ((?! and )[^:])+|are [^:]+ and [^:]+): ",
            result.paragraphs[0],
        )
        assert f"it must return ({', '.join(task.parts)})" in result.paragraphs[0]
    wrong = examine(task, lambda *inputs: task.right(*inputs)[0] + 1, 0)
    assert ", expected " in wrong.paragraphs[0]


def test_the_numbers_in_a_message_are_the_learners():
    def over_queries(query, key, value, mask=None):
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-2)
        return weights @ value, weights

    message = " ".join(checks.check_scaled_dot_product_attention(over_queries).paragraphs)
    row, column = re.search(
        r"row 0 of head 0 sums to (\S+) and column 0 to (\S+)\.", message
    ).groups()
    inputs = dot_product.TASK.cases(checks.inputs.Numbers(0))[0].inputs
    _, weights = over_queries(**inputs)
    assert column == "1.00"
    assert row == f"{weights[0, 0, 0].sum():.2f}" != "1.00"


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
    one = Mistake("one", lambda x: x + 1, "One reason.", "One way out.")
    another = Mistake("another", lambda x: 1 + x, "Another reason.", "Another way out.")

    def cases(numbers):
        return [checks.inputs.Case({"x": numbers.tensor(3)})]

    bank = Bank([one, another])
    task = Task("nothing", lambda x: x, bank, cases, {"result": "numbers"})
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
