"""The stored run on a GPU is whole, and says what chapter 16 says of it."""

import itertools

import pytest

from attention.cost.on_a_gpu import load_on_a_gpu

RUN = load_on_a_gpu()


def test_every_pass_has_its_numbers_or_ran_out_of_memory():
    sizes = {n for _, n, _, _ in RUN.passes}
    assert sizes == {2**i for i in range(10, 16)}
    assert len(RUN.passes) == 4 * len(sizes) * 2 * 2
    for (way, n, _, _), one in RUN.passes.items():
        missing = [value is None for value in one]
        assert not any(missing) or (
            all(missing) and n == max(sizes) and way in ("in the open", "math")
        )


def test_rates_are_those_of_the_times():
    """4 n² d FLOPs in each of 16 heads of 128, 2.5 times as many for the backward pass."""
    for (_, n, causal, backward), one in RUN.passes.items():
        if one.seconds is None:
            continue
        flops = 4 * n**2 * 128 * 16 * (3.5 if backward else 1) / (2 if causal else 1)
        assert one.tflops == pytest.approx(flops / one.seconds / 1e12, rel=0.001)
        assert one.tflops < 989


def test_no_step_reads_faster_than_the_memory_can():
    for (_, cached, kv_heads), one in RUN.steps.items():
        assert one.cache_bytes == 2 * cached * kv_heads * 128 * 2
        rate = one.cache_bytes / one.seconds / 3.35e12
        assert one.share_of_bandwidth == pytest.approx(rate, rel=0.001)
        assert one.share_of_bandwidth < 1


def test_tiles_hold_memory_that_grows_with_the_tokens_alone():
    flash = [RUN.passes["flash", n, False, False].peak_bytes for n in (4096, 8192, 16384)]
    dense = [RUN.passes["in the open", n, False, False].peak_bytes for n in (4096, 8192, 16384)]
    for small, large in itertools.pairwise(flash):
        assert large / small == pytest.approx(2, rel=0.05)
    for small, large in itertools.pairwise(dense):
        assert large / small == pytest.approx(4, rel=0.05)
