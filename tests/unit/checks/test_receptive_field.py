"""What check_receptive_field calls right is what changes where a token is changed."""

import torch

from attention import MultiHeadAttention
from attention.checks.inputs import Numbers
from attention.checks.receptive_field import TASK, receptive_field


def test_it_is_what_a_changed_token_changes():
    """Every token of each case in turn, in layers with random weights."""
    for seed in range(3):
        for case in TASK.cases(Numbers(seed)):
            mask, n_layers = case.inputs["mask"], case.inputs["n_layers"]
            if n_layers > 3:
                continue  # nothing scales the rows, and they would grow without end
            seq = len(mask)
            rng = torch.Generator().manual_seed(seed)
            x = torch.randn(1, seq, 8, generator=rng, dtype=torch.float64)
            before = x.expand(seq, -1, -1)
            after = before + torch.eye(seq, dtype=torch.float64)[..., None]
            for _ in range(n_layers):
                layer = MultiHeadAttention(8, 2).double().requires_grad_(False)
                for weight in layer.parameters():
                    weight.copy_(torch.randn(weight.shape, generator=rng, dtype=torch.float64) / 3)
                before, after = (y + layer(y, mask=mask)[0] for y in (before, after))
            changed = ((after - before).abs() > 1e-11).any(-1)  # (source, token)
            assert changed.T.equal(receptive_field(mask, n_layers))


def test_no_case_is_full_and_in_one_a_token_does_not_see_itself():
    cases = TASK.cases(Numbers(0))
    for case in cases:
        assert not receptive_field(**case.inputs).all()
    assert not cases[0].inputs["mask"].diagonal().any()
