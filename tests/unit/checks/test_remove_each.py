"""What check_remove_each calls right is what a mask does, in a trained model and a new one."""

import pytest
import torch

from attention import padding_mask, split_heads
from attention.checks.remove_each import remove_each
from attention.trained import who_and_whom
from attention.trained.who_and_whom import WhoAndWhom, encode, new_sentences


def attended(model, mask):
    x = model.embed(BATCH.token_ids)
    return model.attention(x, mask=mask)[1], split_heads(model.attention.w_v(x), 2)


BATCH = encode(new_sentences(count=1000))
MASK = padding_mask(BATCH.token_ids, 0)


@torch.no_grad()
def test_a_key_is_removed_as_by_a_mask():
    model = who_and_whom.load().double()
    weights, values = attended(model, MASK)
    for key in (1, 3):
        hidden = MASK & (torch.arange(MASK.shape[-1]) != key)
        without, _ = attended(model, hidden)
        moved = ((without - weights) @ values).norm(dim=-1)
        for i in (0, 5, 9):
            # Where a weight is 1 up to rounding, what it leaves to the others is lost in 1 - w.
            open_rows = weights[i, :, :, key] < 1 - 1e-6
            change, _ = remove_each(weights[i], values[i])
            torch.testing.assert_close(
                change[..., key][open_rows], moved[i][open_rows], rtol=1e-6, atol=1e-9
            )


@torch.no_grad()
@pytest.mark.parametrize(("trained", "low", "high"), [(True, 0.97, 1.0), (False, 0.5, 0.65)])
def test_the_largest_weight_matters_most_in_trained_heads(trained, low, high):
    torch.manual_seed(0)
    model = (who_and_whom.load() if trained else WhoAndWhom(8, 2)).double()
    weights, values = attended(model, MASK)
    shares = []
    for n in (5, 6, 7):
        same = (BATCH.token_ids != 0).sum(1) == n
        pairs = weights[same][:, :, :n, :n], values[same][:, :, :n]
        shares.append(remove_each(*(each.flatten(0, 1) for each in pairs))[1])
    assert low < torch.cat(shares).mean() < high
