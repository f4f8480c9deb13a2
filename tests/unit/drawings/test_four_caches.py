"""What a token leaves in four caches: read back from shades, and who reads which KV head."""

import re

import pytest
import torch

from attention import GroupedQueryAttention, LatentAttention
from attention.drawings import four_caches
from tests.unit.drawings.reading import assert_drawn


@pytest.fixture(scope="module")
@torch.no_grad()
def token():
    """One token's part of each cache, by the layers themselves."""
    torch.manual_seed(0)
    x, kept = torch.randn(1, 1, 48), {}
    for name, n_kv_heads in (("multi-head", 4), ("grouped-query", 2), ("multi-query", 1)):
        layer = GroupedQueryAttention(48, 4, n_kv_heads)
        cache = layer.new_cache(1, 1)
        layer(x, cache=cache)
        kept[name] = torch.stack((cache.keys[0, :, 0], cache.values[0, :, 0]))
    layer = LatentAttention(48, 4, 20, d_rotary=4)
    cache = layer.new_cache(1, 1)
    layer(x, cache=cache)
    return kept, cache.latents[0, 0], cache.rotary_keys[0, 0]


def test_what_is_kept_stands_in_the_drawing(token):
    kept, latent, rotary_key = token
    expected = {"latent row": latent[None], "rotary key": rotary_key[None]}
    for kind, (keys, values) in kept.items():
        for i in range(len(keys)):
            expected[f"key of KV head {i}, {kind}"] = keys[i, :, None]
            expected[f"value of KV head {i}, {kind}"] = values[i, :, None]
    assert_drawn(four_caches(*token, n_heads=4), expected)


def test_the_counts_are_those_of_the_caches(token):
    drawing = four_caches(*token, n_heads=4)
    for svg in (drawing.wide, drawing.narrow):
        counts = re.findall(r"kept: ([\d +]+) numbers", svg)
        assert counts == ["96", "48", "24", "20 + 4"]
    assert re.findall(r"(\d+) numbers kept", drawing.alt) == ["96", "48", "24", "24"]


def test_consecutive_heads_of_queries_are_led_to_one_kv_head(token):
    """Of the lines of grouped-query attention two end in each of two places, in order."""
    drawing = four_caches({"grouped-query": token[0]["grouped-query"]}, *token[1:], n_heads=4)
    for svg in (drawing.wide, drawing.narrow):
        lines = re.findall(r'd="M([\d.]+),46L([\d.]+),66"', svg)
        starts, ends = ([float(x) for x in each] for each in zip(*lines, strict=True))
        assert starts == sorted(starts) and len(starts) == 4
        assert ends[0] == ends[1] < ends[2] == ends[3]
        assert ends[0] == sum(starts[:2]) / 2
    assert "2 KV heads, each read by 2 of them" in drawing.alt
