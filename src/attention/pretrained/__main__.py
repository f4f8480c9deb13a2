"""Measure SmolLM2-135M again, and store what chapters 21 and 22 print and draw.

`python -m attention.pretrained mistakes` makes one of the measurements, which are the functions
below; without a name, all of them are made. This takes minutes on two cores.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from math import exp
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.masks import causal_mask
from attention.positions.rotary import Rotary
from attention.pretrained.cache_bits import SCALES, with_bits
from attention.pretrained.changes import (
    bases_of_data,
    bases_of_weights,
    best_blocks,
    best_keys,
    still,
    with_fewer_numbers,
    with_first_value,
)
from attention.pretrained.heads import (
    Head,
    at_the_verb,
    best,
    chosen_right,
    copied,
    first_token_score,
    repeated,
    scores,
    within_and_across,
    without_heads,
)
from attention.pretrained.loading import Pretrained, load
from attention.pretrained.maps import SENTENCES, map_of
from attention.pretrained.measured import store
from attention.pretrained.mistakes import BASE, D_KEY, GROUP, MISTAKES, price, wrong
from attention.pretrained.needed import SHORT, needed
from attention.pretrained.next_tokens import PROMPTS, greedy
from attention.pretrained.sentences import KINDS, himself_or_herself, is_or_are
from attention.pretrained.texts import token_ids_of_texts
from attention.sparse.sinks import sink_mask
from attention.trained.head_scores import induction_score, previous_token_score
from attention.transformer.decoder_only import DecoderOnly

LONG = 640  # tokens of a text
LENGTHS = (100, 200, 400, 640)
SEEDS = (0, 1, 2)
STEPS, TEMPERATURES = 16, (0.5, 0.7, 1.0, 1.5, 2.0)


def mistakes(smol: Pretrained) -> dict[str, Any]:
    """The price of each mistake on four texts, and what a model that has it writes."""
    texts = token_ids_of_texts(smol.tokenizer, SHORT)
    prices, written = {}, {}
    for name, change in MISTAKES.items():
        model = change(smol.model)
        prices[name] = {text: price(model, ids)._asdict() for text, ids in texts.items()}
        written[name] = [greedy(model, smol.tokenizer, prompt, STEPS) for prompt in PROMPTS]
    return {"prices": prices, "written": written}


def lengths(smol: Pretrained) -> dict[str, dict[str, list[float]]]:
    """The loss on four texts at several lengths, of the model as it is and with two mistakes."""
    return {
        str(length): {
            name: [
                price(MISTAKES[name](smol.model), ids).loss
                for ids in token_ids_of_texts(smol.tokenizer, length).values()
            ]
            for name in ("none", "no mask", "base 10,000")
        }
        for length in LENGTHS
    }


def next_tokens(smol: Pretrained) -> list[dict[str, Any]]:
    """What the model writes, and how sure it is of it at several temperatures."""
    return [
        {
            **greedy(smol.model, smol.tokenizer, prompt, STEPS, TEMPERATURES),
            "temperatures": list(TEMPERATURES),
        }
        for prompt in PROMPTS
    ]


def cache_bits(smol: Pretrained) -> dict[str, Any]:
    """Perplexity with keys and values in a few bits, on four texts.

    The model is in float64: in float32, another processor's last digit puts a number on the other
    side of a step, and the next layers turn this into more than a hundredth of the perplexity.
    """
    texts = token_ids_of_texts(smol.tokenizer, LONG).values()
    model = deepcopy(smol.model).double()

    of_bits = {
        scales: {
            str(bits): perplexities(texts, with_bits(model, bits, scales)) for bits in (8, 4, 3, 2)
        }
        for scales in SCALES
    }
    return {"32 bits": perplexities(texts, model), **of_bits}


def perplexities(texts: Iterable[Tensor], model: DecoderOnly) -> list[float]:
    return [exp(price(model, ids).loss) for ids in texts]


def heads(smol: Pretrained) -> dict[str, Any]:
    """Every head's score by each rule, and where it looks from a sentence's verb, (layers, heads).

    Each is the mean over the texts, or over three seeds; "copied" is the share of a repeated text
    that the model copies, whole and without some of its heads.
    """
    texts = token_ids_of_texts(smol.tokenizer, SHORT).values()
    drawn = [repeated(seed) for seed in SEEDS]

    def mean(rule, of=texts):
        return torch.stack([scores(smol.model, ids, rule) for ids in of]).mean(0)

    by_induction = torch.stack(
        [scores(smol.model, ids, partial(induction_score, token_ids=ids)) for ids in drawn]
    ).mean(0)
    rules = {
        "previous": mean(previous_token_score),
        "first": mean(first_token_score),
        "induction": by_induction,
    }
    verbs = {}
    for kind in KINDS:
        of_seeds = [at_the_verb(smol.model, smol.tokenizer, kind, seed) for seed in SEEDS]
        verbs[kind] = {
            name: torch.stack([each[name] for each in of_seeds]).mean(0).tolist()
            for name in of_seeds[0]
        }
    switched_off = {
        "none": [],
        "the strongest induction head": best(by_induction, 1),
        "the three strongest": best(by_induction, 3),
        "the six strongest": best(by_induction, 6),
        "the strongest previous-token head": best(rules["previous"], 1),
        "the eight strongest previous-token heads": best(rules["previous"], 8),
    }
    switched_off |= others(best(by_induction, 6), best(by_induction, 12))
    return {
        "rules": {name: each.tolist() for name, each in rules.items()},
        "verbs": verbs,
        "copied": {
            name: [copied(without_heads(smol.model, some), ids) for ids in drawn]
            for name, some in switched_off.items()
        },
    }


def removals(smol: Pretrained) -> dict[str, Any]:
    """What each head alone is worth: the loss on each text without it, and the share copied."""
    texts, ids = token_ids_of_texts(smol.tokenizer, SHORT), repeated(SEEDS[0])

    def measured(model):
        losses = [price(model, text).loss for text in texts.values()]
        return {"loss": losses, "copied": copied(model, ids)}

    return {
        "none": measured(smol.model),
        **{
            f"{layer}.{head}": measured(without_heads(smol.model, [(layer, head)]))
            for layer in range(len(smol.model.layers))
            for head in range(9)
        },
    }


def windows(smol: Pretrained) -> dict[str, dict[str, list[float]]]:
    """The loss after the window is full, by what each query sees, on four texts."""
    texts = token_ids_of_texts(smol.tokenizer, LONG).values()
    measured = {}
    for window in (128, 64, 32):
        seen = {"all": causal_mask(LONG), "the window alone": sink_mask(LONG, window - 1, 0)}
        seen |= {f"and the first {n}": sink_mask(LONG, window - 1, n) for n in (1, 4)}
        measured[str(window)] = {
            name: [loss_after(smol.model, ids, window, mask[:-1, :-1]) for ids in texts]
            for name, mask in seen.items()
        }
    return measured


@torch.no_grad()
def loss_after(model: DecoderOnly, ids: Tensor, first: int, mask: Tensor) -> float:
    x, _ = model.read(ids[:, :-1], mask, need_weights=False)
    logits = model.to_logits(x[:, first:])[0]
    return F.cross_entropy(logits, ids[0, first + 1 :]).item()


@torch.no_grad()
def sinks(smol: Pretrained) -> dict[str, list[Any]]:
    """What becomes of the first token in four texts, and of the second if the first is hidden.

    "weight" is the first token's mean weight over all heads, and "length" is the length of its row
    after each layer, as a multiple of the median row's. With the first token "hidden from all"
    others, the second sees only itself, and since positions are relative, this is the text without
    its first token. With the first token "hidden from later" ones, the second still sees it. "loss"
    has the losses of these three, "weight", "hidden from all" and "hidden from later", in this
    order. "value" has three losses on the first `SHORT` tokens: as they are, and with what every
    later row takes from the first token, from layer 12 on, replaced by its mean over these rows,
    and by nothing.
    """
    measured: dict[str, list[Any]] = {
        name: [] for name in ("length", "weight", "hidden from all", "hidden from later")
    }
    measured |= {"loss": [], "value": []}
    from_all, from_later = causal_mask(LONG - 1), causal_mask(LONG - 1)
    from_all[1:, 0] = False
    from_later[2:, 0] = False
    masks = {"weight": (None, 0), "hidden from all": (from_all, 1)}
    masks["hidden from later"] = (from_later, 1)
    for ids in token_ids_of_texts(smol.tokenizer, LONG).values():
        short, ids, following = ids[:, :SHORT], ids[:, :-1], ids[0, 1:]
        x, lengths, losses = smol.model.embedding(ids), [], []
        for layer in smol.model.layers:
            x, _ = layer(x, causal=True, need_weights=False)
            row = x[0].norm(dim=-1)
            lengths.append((row[0] / row.median()).item())
        measured["length"].append(lengths)
        for name, (mask, token) in masks.items():
            x, weights = smol.model.read(ids, mask)
            of_token = torch.stack(weights)[:, 0, :, 2:, token]
            measured[name].append(of_token.mean().item())
            losses.append(F.cross_entropy(smol.model.to_logits(x)[0], following).item())
        measured["loss"].append(losses)
        replaced = [with_first_value(smol.model, of, 12) for of in ("mean", "nothing")]
        measured["value"].append([price(model, short).loss for model in (smol.model, *replaced)])
    return measured


def choices(smol: Pretrained) -> dict[str, dict[str, float]]:
    """The share of words that agree with the subject, without some heads and without others."""
    subject, before_verb = [(13, 8), (25, 2), (16, 5)], [(26, 0), (27, 8)]
    removed = {
        "himself": {
            "none": [],
            **{f"{layer}.{head}": [(layer, head)] for layer, head in subject},
            "all three": subject,
            **others(subject, subject),
        },
        "is": {
            "none": [],
            "13.8": subject[:1],
            "26.0 and 27.8": before_verb,
            **others(before_verb, before_verb),
        },
    }
    sentences = {"himself": himself_or_herself(), "is": is_or_are()}
    return {
        kind: {
            name: chosen_right(without_heads(smol.model, some), smol.tokenizer, sentences[kind])
            for name, some in of_kind.items()
        }
        for kind, of_kind in removed.items()
    }


def others(heads: list[Head], strongest: list[Head]) -> dict[str, list[Head]]:
    """Five draws of equally many heads in the same layers, each once, and none of the strongest."""
    draws = {}
    for seed in range(5):
        rng, drawn = random.Random(seed), []
        for layer, _ in heads:
            taken = {*strongest, *drawn}
            drawn.append(rng.choice([(layer, h) for h in range(9) if (layer, h) not in taken]))
        draws[f"others of the same layers, draw {seed}"] = drawn
    return draws


def groups(smol: Pretrained) -> dict[str, list[float]]:
    """How alike the maps of two heads are, with a shared KV head and without, on four texts."""
    alike: dict[str, list[float]] = {"within": [], "across": []}
    for ids in token_ids_of_texts(smol.tokenizer, SHORT).values():
        with torch.no_grad():
            _, weights = smol.model.read(ids)
        # In many maps the first token receives most of the weight, whatever their heads look for.
        rest = [of_layer[..., 1:, 1:] for of_layer in weights]
        pairs = torch.tensor([within_and_across(of_layer, GROUP) for of_layer in rest])
        for name, of_text in zip(alike, pairs.mean(0).tolist(), strict=True):
            alike[name].append(of_text)
    return alike


def changes(smol: Pretrained) -> dict[str, list[float]]:
    """Perplexity on four texts with fewer turns, fewer numbers for a token, or fewer keys."""
    texts = list(token_ids_of_texts(smol.tokenizer, LONG).values())

    steps: dict[str, dict[str, Any]] = {
        "as it is": {},
        **{
            f"pairs {pairs.start} to {pairs.stop - 1} not turned": {
                "turn": Rotary(D_KEY, BASE, angles=still(pairs))
            }
            for pairs in (slice(0, 8), slice(8, 16), slice(16, 24), slice(24, 32))
        },
        "the best 32 keys": {"weigh": best_keys(32)},
        "the best 4 blocks of 32": {"weigh": best_blocks(4, 32)},
        "the same, the first always": {"weigh": best_blocks(4, 32, first=True)},
    }
    measured = {
        name: perplexities(texts, wrong(**step)(smol.model)) for name, step in steps.items()
    }
    measured["one KV head"] = perplexities(texts, MISTAKES["one KV head"](smol.model))
    for kept in (128, 320):
        by_weights = with_fewer_numbers(smol.model, bases_of_weights(smol.model, kept))
        measured[f"{kept} numbers by weights"] = perplexities(texts, by_weights)
        # Fitted to the other three texts.
        measured[f"{kept} numbers by data"] = [
            exp(price(with_fewer_numbers(smol.model, bases), ids).loss)
            for i, ids in enumerate(texts)
            for bases in [bases_of_data(smol.model, texts[:i] + texts[i + 1 :], kept)]
        ]
    return measured


def maps(smol: Pretrained) -> dict[str, dict[str, Any]]:
    """Where all heads look in each sentence of the explorer of 270 heads."""
    return {each: map_of(smol.model, smol.tokenizer, each) for each in SENTENCES}


MEASUREMENTS: dict[str, Callable[[Pretrained], Any]] = {
    each.__name__: each
    for each in (
        mistakes,
        lengths,
        next_tokens,
        cache_bits,
        heads,
        removals,
        windows,
        sinks,
        choices,
        groups,
        changes,
        needed,
        maps,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASUREMENTS)}")
    names = parser.parse_args().names or list(MEASUREMENTS)
    if unknown := set(names) - MEASUREMENTS.keys():
        parser.error(f"there is no {', '.join(unknown)}; it can be {', '.join(MEASUREMENTS)}")
    smol = load()
    for name in names:
        began = time.monotonic()
        store(name, MEASUREMENTS[name](smol))
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
