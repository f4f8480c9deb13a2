"""check_multi_head_attention (chapter 7): the class, with weights given to it."""

import inspect
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from attention.masks import causal_mask

from .comparing import close, same
from .examining import Task, examine
from .inputs import Case, Numbers
from .multihead_bank import BANK, whole
from .result import Result
from .running import Message, about_error, aside, outcome

LAYERS = ("w_q", "w_k", "w_v", "w_o")
PADDED, CAUSAL = 2, 3  # places among the cases
INPUTS = ("query", "key", "value")
CUT = (
    "Something cuts the way back from the output: `.detach()`, `.data`, `torch.no_grad()`, "
    "`.item()`, or a new tensor made with `torch.tensor`."
)


def cases(numbers: Numbers, biased: tuple[str, ...] = LAYERS) -> list[Case]:
    def case(*, itself, mask=None):
        batch, n_heads, d_key, *lengths = numbers.sizes(5)
        queries, keys = sorted(lengths)
        d_model = n_heads * d_key
        layers = {
            name: (
                numbers.tensor(d_model, d_model) / d_model**0.5,
                numbers.tensor(d_model) if name in biased else None,
            )
            for name in LAYERS
        }
        query = numbers.tensor(batch, queries, d_model)
        key, value = (query, query)
        if not itself:
            key = numbers.tensor(batch, keys, d_model)
            value = numbers.tensor(batch, keys, d_model)
        if mask == "padding":
            mask = numbers.padding(batch, keys)[:, None, None, :]
        elif mask == "causal":
            mask = causal_mask(query.shape[1], key.shape[1])
        inputs = {"layers": layers, "n_heads": n_heads, "query": query, "key": key}
        return Case({**inputs, "value": value, "mask": mask}, unsaid=("layers",))

    return [
        case(itself=False),
        case(itself=True),
        case(itself=False, mask="padding"),
        case(itself=True, mask="causal"),
        case(itself=False, mask="causal"),
    ]


TASK = Task(
    "multi_head_attention",
    whole,
    BANK,
    cases,
    {"output": "batch query d_model", "weights": "batch heads query key"},
    "In evaluation mode nothing may be drawn at random. Dropout is left on: `F.dropout(weights, p, "
    "training=self.training)`, or nn.Dropout in `__init__`. Or a layer besides the four has "
    "weights of its own.",
    first_is_enough=True,
)


def prepared(cls: type, layers: dict[str, tuple], n_heads: int) -> nn.Module:
    """Make the learner's module, give its four layers these weights, and set evaluation mode."""
    d_model = len(layers["w_q"][0])
    # A dropout that stays on in evaluation mode shows only where there is one.
    dropout = {"dropout": 0.5} if "dropout" in inspect.signature(cls).parameters else {}
    module = cls(d_model, n_heads, **dropout)
    for name, (weight, bias) in layers.items():
        layer = getattr(module, name, None)
        if not isinstance(layer, nn.Linear):
            children = ", ".join(dict(module.named_children())) or "none"
            problem = f"is of type {type(layer).__name__}" if layer is not None else "is missing"
            raise Message(
                f"The layer {name} {problem}; the module's layers are: {children}. The check gives "
                "each layer its weights by name: make the four `nn.Linear(d_model, d_model)`, and "
                "call them w_q, w_k, w_v and w_o."
            )
        if layer.weight.shape != weight.shape:
            raise Message(
                f"The weight of {name} has the shape {tuple(layer.weight.shape)}, expected is "
                f"{tuple(weight.shape)}, for all {n_heads} heads together: "
                "`nn.Linear(d_model, d_model)`."
            )
        with torch.no_grad():
            layer.weight.copy_(weight)
            if layer.bias is not None:
                layer.bias.copy_(bias)
    return module.eval()


def layers_with_bias(cls: type) -> tuple[str, ...]:
    """The layers that the learner gave a bias. A class that cannot be made is reported later."""
    try:
        module = cls(6, 2)
        return tuple(name for name in LAYERS if getattr(module, name).bias is not None)
    except (Exception, SystemExit):
        return LAYERS


def gradient_problem(cls: type, case: Case) -> str:
    """Say which gradient is wrong, of an input or a parameter; "" if all are right."""
    layers, n_heads, *inputs, mask = case.inputs.values()
    module = prepared(cls, layers, n_heads)
    leaves = {name: x.clone().requires_grad_() for name, x in zip(INPUTS, inputs, strict=True)}
    theirs = {
        f"{name}.{part}": parameter
        for name in LAYERS
        for part, parameter in getattr(module, name).named_parameters()
    }
    if not all(parameter.requires_grad for parameter in theirs.values()):
        return f"Some parameters ask for no gradient, so that training leaves them alone. {CUT}"
    ours = {
        name: [None if x is None else x.clone().requires_grad_() for x in layer]
        for name, layer in layers.items()
    }
    output, _ = whole(ours, n_heads, *leaves.values(), mask)
    pull = torch.linspace(-1, 1, output.numel()).view_as(output)
    parameters = [x for layer in ours.values() for x in layer if x is not None]
    expected = torch.autograd.grad((output * pull).sum(), [*leaves.values(), *parameters])

    mine = module(*leaves.values(), mask)
    mine = mine[0] if isinstance(mine, tuple) else mine
    if not mine.requires_grad:
        return f"The values are right, and no gradient reaches the parameters. {CUT}"
    wanted = {**leaves, **theirs}
    gradients = torch.autograd.grad((mine * pull).sum(), list(wanted.values()), allow_unused=True)
    for name, mine, due in zip(wanted, gradients, expected, strict=True):
        mine = torch.zeros_like(due) if mine is None else mine
        if not same(mine, due):
            reached = "the gradient of {} is not" if mine.any() else "no gradient reaches {}"
            return f"The values are right, and {reached.format(name)}. {CUT}"
    return ""


def leaks(forward: Callable, case: Case) -> tuple[str, ...]:
    """Say which rows change under a causal mask when only the last token does."""
    layers, n_heads, x, *_, mask = case.inputs.values()
    later = x.clone()
    later[:, -1] += 1.0
    outputs = []
    for tokens in (x, later):
        inputs = [layers, n_heads, tokens, tokens, tokens, mask]
        result = outcome(forward, inputs, list(TASK.parts))
        if not result.parts or result.parts[0].shape != x.shape:
            return ()
        outputs.append(result.parts[0])
    moved = ~close(*outputs)[:, :-1].all(dim=-1)
    if not moved.any():
        return ()
    rows = moved.any(dim=0).nonzero().flatten().tolist()
    return (
        f"Under a causal mask the future leaks: another last token changes your rows {rows}, which "
        "may not see it.",
    )


def dropout_problem(cls: type, case: Case) -> str:
    """Say whether the class takes a dropout that has no effect in training."""
    if "dropout" not in inspect.signature(cls).parameters:
        return ""
    layers, n_heads, *inputs = case.inputs.values()
    module = prepared(cls, layers, n_heads).train()
    first, second = (outcome(module, inputs, list(TASK.parts)) for _ in range(2))
    if first.parts and second.parts and same(first.parts[0], second.parts[0]):
        return (
            "The values are right, and the dropout that the class takes has no effect: in training "
            "mode, with dropout=0.5, two calls give the same output. Drop weights, after the "
            "softmax: `F.dropout(weights, self.dropout, training=self.training)`."
        )
    return ""


def check_multi_head_attention(cls: type, *, seed: int = 0) -> Result:
    """Check a class MultiHeadAttention(d_model, n_heads), an nn.Module.

    Its layers are four `nn.Linear(d_model, d_model)` called w_q, w_k, w_v and w_o, with biases or
    without; the check copies weights into them. Its forward(query, key, value, mask=None) takes
    query (batch, query, d_model), key and value (batch, key, d_model) and a boolean mask, True =
    may attend, and returns output (batch, query, d_model) and weights (batch, heads, query, key),
    or the output alone. Where the class takes `dropout`, it must act in training mode only.
    """
    check = f"check_{TASK.name}"
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        got = f"a {cls.__name__} that is no nn.Module" if isinstance(cls, type) else "no class"
        way_out = f"Give it your class itself, a subclass of nn.Module: `{check}(MyAttention)`."
        return Result(check, False, (f"This is {got}. {way_out}",))

    def forward(layers, n_heads, query, key, value, mask):
        return prepared(cls, layers, n_heads)(query, key, value, mask)

    with aside():
        biased = layers_with_bias(cls)
        task = replace(TASK, cases=lambda numbers: cases(numbers, biased))
        result = examine(task, forward, seed)
        if not result.passed:
            leak = () if result.mistakes else leaks(forward, cases(Numbers(seed), biased)[CAUSAL])
            return replace(result, paragraphs=(*result.paragraphs, *leak))
        crossed = cases(Numbers(seed), biased)[PADDED]
        try:
            problem = gradient_problem(cls, crossed) or dropout_problem(cls, crossed)
        except (Exception, SystemExit) as error:
            problem = f"The values are right, and the gradients cannot be had. {about_error(error)}"
    if problem:
        return Result(check, False, (problem,))
    said = "Gradients are right too, and nothing is drawn at random in evaluation mode."
    return replace(result, paragraphs=(*result.paragraphs, said))
