"""The stream is as wide as the row is long, and so is what each sublayer of the model adds."""

import pytest
import torch

from attention.drawings import residual_stream
from attention.trained import relative_clauses
from attention.trained.without_parts import rows_by_sublayer
from tests.unit.drawings.reading import assert_drawn

NAMES = ["attention 1", "feed-forward 1", "attention 2", "feed-forward 2"]


@torch.no_grad()
def steps():
    model = relative_clauses.load(2)
    tokens = ["the", "dog", "saw", "the", "bird", "that", "the", "cat", "chased"]
    ids = relative_clauses.VOCABULARY.encode_batch([tokens])
    x = model.positional_encoding(model.embedding(ids))
    # What each sublayer writes, by itself, without the sums.
    changes, start = [], x
    for layer in model.encoder.layers:
        output, _ = layer.self_attention(layer.self_attention_norm(x))
        x = x + output
        output_2 = layer.feed_forward(layer.feed_forward_norm(x))
        x = x + output_2
        changes += [output[0, 1], output_2[0, 1]]
    rows = rows_by_sublayer(model.encoder, start)
    return torch.stack([row[0, 1] for row in rows]), changes


def test_lengths_of_rows_and_of_changes_are_drawn():
    rows, changes = steps()
    expected = {
        "rows": rows.square().sum(dim=-1).sqrt(),
        "changes": torch.stack([change.square().sum().sqrt() for change in changes]),
    }
    assert_drawn(residual_stream(rows, "dog", NAMES), expected)


def test_a_row_that_is_replaced_is_seen():
    rows, changes = steps()
    replaced = torch.stack([rows[0], *changes])
    with pytest.raises(AssertionError):
        assert_drawn(
            residual_stream(replaced, "dog", NAMES),
            {"rows": rows.norm(dim=-1), "changes": torch.stack(changes).norm(dim=-1)},
        )
