import re

import pytest
import torch

from attention import (
    DotProduct,
    HeadGate,
    LinearBias,
    Mechanism,
    MultiHeadAttention,
    PerHeadAttention,
    Rotary,
    pool_kv_heads,
    tiled_attention,
)


def test_each_head_holds_its_rows():
    whole = MultiHeadAttention(8, 4)
    per_head = PerHeadAttention.from_multi_head(whole)
    for h, head in enumerate(per_head.heads):
        for name in ("w_q", "w_k", "w_v"):
            rows = getattr(whole, name).weight[2 * h : 2 * h + 2]
            assert torch.equal(getattr(head, name).weight, rows)
    assert torch.equal(per_head.w_o.weight, whole.w_o.weight)
    with torch.no_grad():  # a copy
        whole.w_q.weight.zero_()
    assert per_head.heads[0].w_q.weight.any()


def test_names_type_and_mode():
    whole = MultiHeadAttention(6, 2, bias=False).to(torch.bfloat16).eval()
    per_head = PerHeadAttention.from_multi_head(whole)
    assert list(per_head.state_dict()) == [
        *(f"heads.{h}.{w}.weight" for h in range(2) for w in ("w_q", "w_k", "w_v")),
        "w_o.weight",
    ]
    assert {p.dtype for p in per_head.parameters()} == {torch.bfloat16}
    assert not any(module.training for module in per_head.modules())
    count = sum(p.numel() for p in per_head.parameters())
    assert count == sum(p.numel() for p in whole.parameters())
    assert "d_model=6, n_heads=2" in repr(per_head)


def test_a_mask_of_its_own_for_every_head():
    per_head = PerHeadAttention(4, 2)
    mask = torch.tensor([[[[True, False]], [[False, True]]]])  # (1, 2, 1, 2)
    _, weights = per_head(torch.randn(3, 1, 4), torch.randn(3, 2, 4), mask=mask)
    assert weights.tolist() == [[[[1, 0]], [[0, 1]]]] * 3


NOT_CARRIED = {
    "rotary": (
        DotProduct(transform=Rotary(2)),
        "module.attend has a transform, Rotary, which does not exist here; set "
        "module.attend.transform = None to copy the weights alone",
    ),
    "a bias": (DotProduct(bias=LinearBias(4)), "module.attend has a bias, LinearBias, which does"),
    "another mechanism": (
        Mechanism(tiled_attention),
        "module attends by Mechanism, which does not exist here; set module.attend = DotProduct() "
        "to copy the weights alone",
    ),
    "a gate": (HeadGate(DotProduct(), torch.ones(4)), "module attends by HeadGate, which does"),
}


@pytest.mark.parametrize("name", NOT_CARRIED)
def test_what_a_copy_could_not_do_is_refused(name):
    attend, message = NOT_CARRIED[name]
    module = MultiHeadAttention(8, 4, attend=attend)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        PerHeadAttention.from_multi_head(module)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        pool_kv_heads(module, n_kv_heads=2)


def test_dropout_is_carried_over_or_refused():
    module = MultiHeadAttention(8, 4, dropout=0.5)
    assert pool_kv_heads(module, n_kv_heads=2).attend.dropout == 0.5
    says = "module has dropout=0.5, and this one drops nothing; set module.attend.dropout = 0.0"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}"):
        PerHeadAttention.from_multi_head(module)
