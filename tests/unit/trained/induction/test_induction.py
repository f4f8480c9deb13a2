"""Induction: its sequences, its stored models and what their heads do, and a training."""

import math

import pytest
import torch

from attention import MultiHeadAttention
from attention.trained import induction
from attention.trained.head_scores import (
    duplicate_token_score,
    induction_score,
    previous_token_score,
)
from attention.trained.induction import (
    LAYERS,
    LENGTH,
    AttentionOnly,
    accuracy,
    draw_sequences,
    k_composition,
    new_sequences,
    random_composition,
    without_head,
)
from attention.trained.induction.data import LONGEST, SHORTEST
from tests.unit.refusals import refusals

NEW = new_sequences()
FEW = new_sequences(200)


@torch.no_grad()
def weights_of(model):
    return model(FEW.token_ids)[1]


def test_only_one_part_comes_twice_and_the_next_token_is_known_in_its_second_copy():
    lengths, distances = set(), set()
    for ids, determined in zip(
        *(x.tolist() for x in draw_sequences(2000, generator(1))), strict=True
    ):
        again = [i for i in range(LENGTH) if ids[i] in ids[:i]]
        first = [ids.index(ids[i]) for i in again]
        assert again == list(range(again[0], again[0] + len(again)))
        assert first == list(range(first[0], first[0] + len(again)))
        assert first[-1] < again[0]
        known = [
            i for i in range(LENGTH - 1) if i in again and ids[i + 1] == ids[ids.index(ids[i]) + 1]
        ]
        assert [i for i in range(LENGTH) if determined[i]] == known == again[:-1]
        lengths.add(len(again))
        distances.add(again[0] - first[0])
    assert lengths == set(range(SHORTEST, LONGEST + 1))
    assert distances >= set(range(SHORTEST, 25)), "no one distance is the rule"


def generator(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("n_layers", LAYERS)
def test_the_model_is_the_sum_over_its_heads(n_layers):
    model, token_ids = induction.load(n_layers).double(), FEW.token_ids[:5, :20]
    x = model.embedding.weight[token_ids] + model.positions.table[:20]
    for layer in model.layers:
        x = x + by_matrices(layer, x)
    logits, expected = model(token_ids)[0], x @ model.to_next.weight.T
    torch.testing.assert_close(logits, expected)
    gradients, wanted = (
        torch.autograd.grad(y.square().mean(), model.parameters()) for y in (logits, expected)
    )
    torch.testing.assert_close(gradients, wanted)


def by_matrices(layer, x):
    """Attention by the two products of each head, W_QK and W_OV, that `k_composition` is about."""
    future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
    total = 0
    for head in range(layer.n_heads):
        w_qk, w_ov = products(layer, head)
        scores = torch.einsum("bqi,ij,bkj->bqk", x, w_qk, x) / math.sqrt(layer.d_key)
        weights = scores.masked_fill(future, -math.inf).softmax(-1)
        total = total + weights @ x @ w_ov.T
    return total


def products(layer, head):
    part = slice(head * layer.d_key, (head + 1) * layer.d_key)
    w_qk = layer.w_q.weight[part].T @ layer.w_k.weight[part]
    return w_qk, layer.w_o.weight[:, part] @ layer.w_v.weight[part]


def test_the_model_is_causal():
    model = induction.load(2)
    other = FEW.token_ids.clone()
    other[:, 20:] = (other[:, 20:] + 1) % 32
    assert torch.equal(model(FEW.token_ids)[0][:, :20], model(other)[0][:, :20])


@pytest.mark.parametrize("n_layers", LAYERS)
def test_the_stored_weights_do_what_training_measured(n_layers):
    assert accuracy(induction.load(n_layers), NEW) == pytest.approx(
        induction.measured(n_layers), abs=0.002
    )


def test_one_layer_falls_short_and_two_do_not():
    assert induction.measured(1) < 0.2
    assert induction.measured(2) > 0.99


def test_accuracy_counts_the_determined_tokens_alone():
    """By a model that always says 3, the share of threes among them."""
    model = AttentionOnly(1)
    token_ids, determined = FEW
    model.forward = lambda ids: (torch.nn.functional.one_hot(torch.full_like(ids, 3), 32).float(),)
    nexts = [
        ids[i + 1]
        for ids, known in zip(token_ids, determined, strict=True)
        for i in range(31)
        if known[i]
    ]
    share = sum(int(token) == 3 for token in nexts) / len(nexts)
    assert accuracy(model, FEW) == pytest.approx(share)
    assert 0 < share < 0.1


def test_the_stored_heads_are_a_previous_token_head_and_induction_heads():
    first, second = weights_of(induction.load(2))
    previous = previous_token_score(first)
    assert previous.max() > 0.8 and previous.min() < 0.2
    assert induction_score(second, FEW.token_ids).min() > 0.95
    assert duplicate_token_score(second, FEW.token_ids).max() < 0.05
    (only,) = weights_of(induction.load(1))
    assert induction_score(only, FEW.token_ids).max() < 0.2


def test_without_the_previous_token_head_nothing_is_left_and_without_another_all():
    model = induction.load(2)
    previous = previous_token_score(weights_of(model)[0]).argmax().item()
    left = {(i, j): accuracy(without_head(model, j, layer=i), NEW) for i in (0, 1) for j in (0, 1)}
    assert left.pop((0, previous)) < 0.1
    assert min(left.values()) > 0.98, "the two induction heads stand in for each other"
    both = without_head(without_head(model, 0, layer=1), 1, layer=1)
    assert accuracy(both, NEW) < 0.1
    assert accuracy(model, NEW) > 0.99, "the model itself is left as it was"


def test_a_head_switched_off_adds_nothing():
    model = induction.load(2)
    x = torch.randn(2, 6, 32)
    for head, other in ((0, 1), (1, 0)):
        layer = without_head(model, head).layers[0].double()
        w_qk, w_ov = products(layer, other)
        future = torch.ones(6, 6).triu(1).bool()
        scores = torch.einsum("bqi,ij,bkj->bqk", x.double(), w_qk, x.double()) / 4
        rest = scores.masked_fill(future, -math.inf).softmax(-1) @ x.double() @ w_ov.T
        torch.testing.assert_close(layer(x.double(), causal=True)[0], rest)


def test_k_composition_is_the_norm_of_the_product_of_a_pair():
    """For layers of different numbers of heads, so that no two axes can be mixed up."""
    first, second = MultiHeadAttention(12, 2).double(), MultiHeadAttention(12, 3).double()
    score = k_composition(first, second)
    for i in range(2):
        for j in range(3):
            _, w_ov = products(first, i)
            w_qk, _ = products(second, j)
            by_values = [m.detach().pow(2).sum().sqrt() for m in (w_qk @ w_ov, w_qk, w_ov)]
            torch.testing.assert_close(score[i, j], by_values[0] / by_values[1] / by_values[2])


def test_k_composition_is_0_where_nothing_is_read_and_1_where_all_is():
    first, second = MultiHeadAttention(4, 2), MultiHeadAttention(4, 2)
    eye = torch.eye(4)
    with torch.no_grad():
        for w in (first.w_v, first.w_o, second.w_q, second.w_k):
            w.weight.zero_()
        # Head i of `first` writes column i alone; head j of `second` reads column j in its keys.
        for i in (0, 1):
            first.w_v.weight[2 * i] = eye[3]
            first.w_o.weight[i, 2 * i] = 2.0
            second.w_q.weight[2 * i] = eye[2]
            second.w_k.weight[2 * i] = 5 * eye[i]
    assert k_composition(first, second).tolist() == [[1, 0], [0, 1]]


def test_the_induction_heads_read_what_the_previous_token_head_writes():
    model = induction.load(2)
    score = k_composition(*model.layers)
    previous = previous_token_score(weights_of(model)[0]).argmax().item()
    mean, deviation = random_composition()
    assert (score[previous] > mean + 5 * deviation).all()
    assert ((score[1 - previous] - mean).abs() < 2 * deviation).all()


test_bad_input = refusals(
    [
        (lambda: induction.load(3), "no weights are stored for n_layers=3; it can be 1 or 2"),
        (lambda: AttentionOnly(0), "n_layers must be at least 1, got 0"),
        (lambda: draw_sequences(0, generator(0)), "count must be at least 1, got 0"),
        (lambda: random_composition(0), "draws must be at least 1, got 0"),
        (
            lambda: k_composition(MultiHeadAttention(4, 2), MultiHeadAttention(8, 2)),
            "first and second must have one d_model, got 4 and 8",
        ),
    ]
)
