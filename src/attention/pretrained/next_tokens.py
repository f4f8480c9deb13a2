"""What a published model writes, token by token, and what else it might have written."""

from typing import Any

import torch

from attention.transformer.decoder_only import DecoderOnly

PROMPTS = ("The capital of France is", "Once upon a time, there was a little")
LIKELIEST = 5


@torch.no_grad()
def greedy(
    model: DecoderOnly,
    tokenizer: Any,
    prompt: str,
    n_new: int,
    temperatures: tuple[float, ...] = (1.0,),
) -> dict[str, Any]:
    """Write by the likeliest token, and note the likeliest few at every step.

    The whole text is read again for each token, so that what attends needs no cache.

    Args:
        model: the model, whole or with a mistake.
        tokenizer: as `load` returns it.
        prompt: the text that it continues.
        n_new: how many tokens it writes.
        temperatures: the logits are divided by each, for the shares alone.

    Returns:
        A dict of "read", the prompt's tokens as texts, "written", the new ones, "likeliest", for
        each step the texts of the five likeliest, and "shares", for each temperature and step their
        probabilities.

    Example:
        >>> from attention.pretrained import load
        >>> from attention.pretrained.next_tokens import greedy
        >>> model, tokenizer, _ = load()
        >>> greedy(model, tokenizer, "The capital of France is", 2)["written"]
        [' Paris', '.']
    """
    ids = tokenizer.encode(prompt).ids
    text = [tokenizer.decode([each]) for each in ids]
    likeliest, shares = [], [[] for _ in temperatures]
    for _ in range(n_new):
        x, _ = model.read(torch.tensor([ids]), need_weights=False)
        logits = model.to_logits(x[:, -1:])[0, 0]
        best = logits.topk(LIKELIEST).indices
        likeliest.append([tokenizer.decode([each]) for each in best.tolist()])
        for of_one, temperature in zip(shares, temperatures, strict=True):
            of_one.append((logits / temperature).softmax(-1)[best].tolist())
        ids.append(best[0].item())
    return {
        "read": text,
        "written": [each[0] for each in likeliest],
        "likeliest": likeliest,
        "shares": shares,
    }
