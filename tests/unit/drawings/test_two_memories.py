"""What crosses between the memories is what the two loops read and write."""

import pytest
import torch

from attention.drawings import two_memories
from tests.unit.drawings.reading import assert_drawn, read_back


def head(n_queries=16384, n_keys=16384, d_value=64, dtype=torch.float16):
    return (
        torch.empty(n_queries, 64, dtype=dtype),
        torch.empty(n_keys, 64, dtype=dtype),
        torch.empty(n_keys, d_value, dtype=dtype),
    )


def by_loops(q, k, v, tile):
    """Megabytes read and written, tile by tile."""
    size = q.element_size()
    crossed = dict.fromkeys(("Q", "K", "V", "output", "L"), 0)
    for rows in q.split(tile):
        crossed["Q"] += rows.numel() * size
        for columns in (k.split(50), v.split(50)):  # however many keys a step takes
            name = "K" if columns[0].data_ptr() == k.data_ptr() else "V"
            crossed[name] += sum(part.numel() for part in columns) * size
        crossed["output"] += len(rows) * v.shape[1] * size
        crossed["L"] += len(rows) * 4
    return torch.tensor(list(crossed.values())).double() / 1e6


def written_and_read(q, k, v):
    weights = q.shape[0] * k.shape[0]
    numbers = [q.numel(), k.numel(), *[weights] * 4, v.numel(), q.shape[0] * v.shape[1]]
    return torch.tensor(numbers).double() * q.element_size() / 1e6


@pytest.mark.parametrize(
    ("sizes", "tile"),
    [({}, 64), ({}, 256), ({"n_queries": 1000, "n_keys": 3000, "d_value": 32}, 96)],
)
def test_the_bytes_of_both_ways(sizes, tile):
    q, k, v = head(**sizes)
    drawing = two_memories(q, k, v, tile)
    expected = {"standard": written_and_read(q, k, v), "in tiles": by_loops(q, k, v, tile)}
    assert_drawn(drawing, expected, atol=1e-4 * float(expected["standard"].sum()))


def test_the_chapters_head():
    drawing = two_memories(*head(), 64)
    assert "In all 1,078 MB cross" in drawing.alt and "moves 2,156 MB" in drawing.alt
    for svg in (drawing.wide, drawing.narrow):
        assert ">once, 2 MB<" in svg or ">2 MB<" in svg
        assert "256 times" in svg and "1,074 MB" in svg
        tiled, standard = (read_back(svg)[name].sum() for name in ("in tiles", "standard"))
        assert tiled / standard == pytest.approx(0.5, abs=0.002)


def test_numbers_of_twice_the_size_move_twice_as_much():
    half, full = (
        two_memories(*head(dtype=dtype), 64).values["standard"]
        for dtype in (torch.float16, torch.float32)
    )
    torch.testing.assert_close(full, 2 * half)
