"""Measure SmolLM2-135M anew, and store what chapters 21 and 22 print and draw.

`python -m attention.pretrained mistakes` makes one of the measurements, which are the functions
below; without a name all are made. It takes minutes on two cores.
"""

import argparse
import time
from collections.abc import Callable
from math import exp
from typing import Any

from attention.pretrained.cache_bits import SCALES, with_bits
from attention.pretrained.loading import Pretrained, load
from attention.pretrained.measured import store
from attention.pretrained.mistakes import MISTAKES, price
from attention.pretrained.next_tokens import PROMPTS, greedy
from attention.pretrained.texts import token_ids_of_texts

SHORT, LONG = 200, 640  # tokens of a text
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
    """Perplexity with keys and values in a few bits, on four texts."""
    texts = token_ids_of_texts(smol.tokenizer, LONG).values()

    def perplexities(model):
        return [exp(price(model, ids).loss) for ids in texts]

    of_bits = {
        scales: {
            str(bits): perplexities(with_bits(smol.model, bits, scales)) for bits in (8, 4, 3, 2)
        }
        for scales in SCALES
    }
    return {"32 bits": perplexities(smol.model), **of_bits}


MEASUREMENTS: dict[str, Callable[[Pretrained], Any]] = {
    each.__name__: each for each in (mistakes, next_tokens, cache_bits)
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
