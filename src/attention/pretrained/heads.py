"""What each head of a published model looks at, by the rules of this book, and what needs it.

A rule is a score for each head, (layers, heads): the weight that it gives, on average, to the token
that the rule names.
"""

import random
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from attention.pretrained.mistakes import sharing_weights
from attention.pretrained.sentences import Choice, draw
from attention.trained.ablation import switch_off
from attention.trained.head_scores import aligned_score
from attention.transformer.decoder_only import DecoderOnly

Head = tuple[int, int]  # layer and head, both counted from 0


def scores(
    model: DecoderOnly,
    token_ids: Int[Tensor, "batch seq"],
    rule: Callable[[Tensor], Tensor],
) -> Float[Tensor, "layers heads"]:
    """Score every head of a model on a text.

    Args:
        model: the model.
        token_ids: (batch, seq).
        rule: makes the score of each head from a layer's weights (batch, heads, query, key).

    Example:
        >>> import torch
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.heads import scores
        >>> from attention.trained.head_scores import previous_token_score
        >>> model = DecoderOnly(50, 16, 4, 64, n_layers=2)
        >>> scores(model, torch.tensor([[3, 1, 4]]), previous_token_score).shape
        torch.Size([2, 4])
    """
    with torch.no_grad():
        _, weights = model.read(token_ids)
    return torch.stack([rule(of_layer) for of_layer in weights])


def first_token_score(weights: Float[Tensor, "batch heads query key"]) -> Float[Tensor, " heads"]:
    """The mean weight of each head on the first token, from the second query on.

    Args:
        weights: (batch, heads, query, key).

    Example:
        >>> import torch
        >>> from attention.pretrained.heads import first_token_score
        >>> weights = torch.tensor([[1.0, 0, 0], [0.9, 0.1, 0], [0.2, 0.7, 0.1]])[None, None]
        >>> first_token_score(weights)  # the mean of 0.9 and 0.2
        tensor([0.5500])
    """
    batch, _, query, key = weights.shape
    first = torch.zeros(batch, query, key, dtype=torch.bool, device=weights.device)
    first[:, 1:, 0] = True
    return aligned_score(weights, first)


def repeated(seed: int, batch: int = 4, length: int = 40) -> Int[Tensor, "batch seq"]:
    """Random tokens, and the same once more: copying alone can predict the second half.

    Args:
        seed: of the draw.
        batch: how many sequences.
        length: of a half.

    Source:
        Olsson et al. 2022, "Data collection".

    Example:
        >>> from attention.pretrained.heads import repeated
        >>> repeated(seed=0).shape
        torch.Size([4, 80])
    """
    rng = torch.Generator().manual_seed(seed)
    once = torch.randint(1000, 40_000, (batch, length), generator=rng)
    return torch.cat([once, once], dim=1)


@torch.no_grad()
def copied(model: DecoderOnly, token_ids: Int[Tensor, "batch seq"]) -> float:
    """The share of tokens that are predicted right in the second half of `repeated` ones.

    Args:
        model: the model, whole or without some heads.
        token_ids: (batch, seq), of `repeated`.

    Example:
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.heads import copied, repeated
        >>> model = DecoderOnly(40_000, 16, 4, 64, n_layers=1)
        >>> 0 <= copied(model, repeated(seed=0)) <= 1
        True
    """
    half = token_ids.shape[1] // 2
    x, _ = model.read(token_ids[:, :-1], need_weights=False)
    likeliest = model.to_logits(x[:, half:]).argmax(-1)
    return (likeliest == token_ids[:, half + 1 :]).double().mean().item()


def without_heads(model: DecoderOnly, heads: Iterable[Head]) -> DecoderOnly:
    """Copy a model, with some heads switched off; the weights are shared.

    Args:
        model: stays as it is.
        heads: (layer, head) each, both counted from 0.

    Example:
        >>> import torch
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.heads import without_heads
        >>> model, ids = DecoderOnly(50, 16, 4, 64, n_layers=2), torch.tensor([[3, 1, 4]])
        >>> torch.equal(without_heads(model, [(1, 3)])(ids)[0], model(ids)[0])
        False
    """
    model = sharing_weights(model)
    for layer, head in heads:
        switch_off(model.layers[layer].self_attention, head)
    return model


@torch.no_grad()
def at_the_verb(
    model: DecoderOnly, tokenizer: Any, kind: str, seed: int, count: int = 60
) -> dict[str, Float[Tensor, "layers heads"]]:
    """Where each head looks from the verb of drawn sentences, and back to it: mean weights.

    Args:
        model: the model.
        tokenizer: as `load` returns it.
        kind: of `attention.pretrained.sentences.KINDS`.
        seed: of the draw.
        count: how many sentences.

    Returns:
        A dict of mean weights, (layers, heads) each. The verb gives "subject" to its own subject,
        "nearest" to the nearest noun before it, and "previous" to the token before it; its object
        gives "object" to the verb.

    Example:
        >>> from attention.pretrained import load
        >>> from attention.pretrained.heads import at_the_verb
        >>> model, tokenizer, _ = load()
        >>> looked = at_the_verb(model, tokenizer, "place", seed=0, count=5)
        >>> looked["subject"][13, 8] > 0.5, looked["nearest"][13, 8] < 0.1
        (tensor(True), tensor(True))
    """
    rng, found = random.Random(seed), []
    for _ in range(count):
        one = draw(kind, tokenizer, rng)
        _, weights = model.read(torch.tensor([one.ids]))
        of_heads = torch.stack(weights)[:, 0]  # (layers, heads, query, key)
        places = {"subject": one.subject, "nearest": one.nearest, "previous": one.verb - 1}
        looked = {name: of_heads[..., one.verb, place] for name, place in places.items()}
        found.append({**looked, "object": of_heads[..., one.object, one.verb]})
    return {name: torch.stack([each[name] for each in found]).mean(0) for name in found[0]}


@torch.no_grad()
def chosen_right(model: DecoderOnly, tokenizer: Any, choices: Iterable[Choice]) -> float:
    """The share of beginnings after which the right one of two words is the likelier.

    What is read is the row of a beginning's last token, so the heads that count are those that look
    from there, and those that wrote what these read.

    Args:
        model: the model, whole or without some heads.
        tokenizer: as `attention.pretrained.load` returns it.
        choices: as `is_or_are` and `himself_or_herself` make them.

    Example:
        >>> from attention.pretrained import load
        >>> from attention.pretrained.heads import chosen_right
        >>> from attention.pretrained.sentences import is_or_are
        >>> model, tokenizer, _ = load()
        >>> chosen_right(model, tokenizer, is_or_are()) > 0.9
        True
    """
    of_length: dict[int, list[list[int]]] = {}
    for beginning, *words in choices:
        ids = tokenizer.encode(beginning).ids
        both = [tokenizer.encode(word).ids[0] for word in words]
        of_length.setdefault(len(ids), []).append(ids + both)
    right = []
    for rows in map(torch.tensor, of_length.values()):
        x, _ = model.read(rows[:, :-2], need_weights=False)
        good, bad = model.to_logits(x[:, -1:])[:, 0].gather(1, rows[:, -2:]).unbind(1)
        right += (good > bad).tolist()
    return sum(right) / len(right)


def within_and_across(
    weights: Float[Tensor, "batch heads query key"], group: int
) -> tuple[float, float]:
    """How alike the maps of two heads are, with a shared KV head and without.

    Args:
        weights: of one layer, (batch, heads, query, key).
        group: how many query heads share a KV head.

    Returns:
        The mean cosine of two heads' maps within a group, and that across groups.

    Example:
        >>> import torch
        >>> from attention.pretrained.heads import within_and_across
        >>> maps = torch.eye(2).repeat_interleave(2, dim=0)[None, :, None]  # two pairs of heads
        >>> within_and_across(maps, group=2)
        (1.0, 0.0)
    """
    flat = F.normalize(weights.transpose(0, 1).flatten(1), dim=-1)
    cosines, n_heads = flat @ flat.T, len(flat)
    group_of = torch.arange(n_heads) // group
    same = group_of[:, None] == group_of
    return (
        cosines[same & ~torch.eye(n_heads, dtype=torch.bool)].mean().item(),
        cosines[~same].mean().item(),
    )


def best(of_heads: Float[Tensor, "layers heads"], count: int) -> list[Head]:
    """The heads of the highest scores, the highest first.

    Args:
        of_heads: the score of each head, (layers, heads).
        count: how many.

    Example:
        >>> import torch
        >>> from attention.pretrained.heads import best
        >>> best(torch.tensor([[0.1, 0.9], [0.3, 0.2]]), 2)
        [(0, 1), (1, 0)]
    """
    n_heads = of_heads.shape[1]
    return [divmod(i, n_heads) for i in of_heads.flatten().topk(count).indices.tolist()]
