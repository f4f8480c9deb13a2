import pytest
import torch
from torch import nn

from attention.multihead import MultiHeadAttention
from attention.transformer.decoder import Decoder, DecoderLayer
from attention.transformer.encoder import Encoder, EncoderLayer
from attention.transformer.encoder_decoder import EncoderDecoder
from attention.transformer.feed_forward import FeedForward
from tests.unit.cases import assert_close
from tests.unit.refusals import refusals
from tests.unit.transformer.torchs_layers import IDS, compare, randomised

TARGET = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]])


class Torchs(nn.Module):
    """The same from torch's parts: nn.Embedding, nn.Transformer and nn.Linear."""

    def __init__(self, norm_first):
        super().__init__()
        self.source = nn.Embedding(10, 8, padding_idx=0)
        self.target = nn.Embedding(12, 8, padding_idx=0)
        self.transformer = nn.Transformer(
            8, 2, 3, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first
        )
        self.to_logits = nn.Linear(8, 12)

    def forward(self, source, target):
        rate = 10000 ** (torch.arange(0, 8, 2, dtype=torch.float64) / 8)
        angle = torch.arange(6, dtype=torch.float64)[:, None] / rate
        position = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)
        output = self.transformer(
            self.source(source) * 8**0.5 + position[: source.shape[1]],
            self.target(target) * 8**0.5 + position[: target.shape[1]],
            tgt_mask=torch.ones(5, 5).triu(1) == 1,
            src_key_padding_mask=source == 0,
            tgt_key_padding_mask=target == 0,
            memory_key_padding_mask=source == 0,
        )
        return self.to_logits(output)


def from_torch(theirs):
    norm_first = theirs.transformer.encoder.layers[0].norm_first
    ours = EncoderDecoder(10, 12, 8, 2, 16, n_layers=2, norm_first=norm_first, max_length=6)
    ours.source_embedding.table.load_state_dict(theirs.source.state_dict())
    ours.target_embedding.table.load_state_dict(theirs.target.state_dict())
    ours.encoder = Encoder.from_torch(theirs.transformer.encoder)
    ours.decoder = Decoder.from_torch(theirs.transformer.decoder)
    ours.to_logits.load_state_dict(theirs.to_logits.state_dict())
    return ours


@pytest.fixture
def in_float64():
    """The positional encoding is stored in torch's default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("in_float64")
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # torch's remark on its own encoder
@pytest.mark.parametrize("norm_first", [False, True])
def test_equals_torchs_transformer_in_values_and_gradients(norm_first):
    theirs = randomised(Torchs(norm_first))
    ours = from_torch(theirs)
    output = ours(IDS, TARGET)
    compare(ours, theirs, output.logits, theirs(IDS, TARGET), [], from_torch)
    assert len(output.encoder_weights) == 3
    assert len(output.self_weights) == len(output.cross_weights) == 2
    without = ours(IDS, TARGET, need_weights=False)
    assert_close(without.logits, output.logits)
    assert without[1:] == (None, None, None)


def small(**options):
    model = EncoderDecoder(10, 12, 8, 2, 16, n_layers=2, **options)
    return randomised(model)


def test_step_by_step_equals_all_at_once():
    """Decoding, one token more per step over the same memory, equals what training computes."""
    model = small()
    whole = model(IDS, TARGET).logits
    memory, _ = model.encode(IDS)
    for t in range(1, 6):
        logits, *_ = model.decode(TARGET[:, :t], memory, IDS)
        assert_close(logits, whole[:, :t])


test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: small(max_length=5)(IDS, TARGET),
            "x has 6 positions, more than max_length=5",
        ),
        (
            lambda: small().decode(TARGET, small().encode(IDS)[0], IDS[:, :4]),
            "source must have shape (batch, source) = (2, 6), got (2, 4)",
        ),
    ]
)


SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 16}
MAKE = {
    "EncoderLayer": lambda **options: EncoderLayer(**SIZES, **options),
    "Encoder": lambda **options: Encoder(**SIZES, n_layers=2, **options),
    "DecoderLayer": lambda **options: DecoderLayer(**SIZES, **options),
    "Decoder": lambda **options: Decoder(**SIZES, n_layers=2, **options),
    "EncoderDecoder": lambda **options: EncoderDecoder(9, 9, **SIZES, n_layers=2, **options),
}


@pytest.mark.parametrize("name", MAKE)
def test_every_option_reaches_every_part(name):
    model = MAKE[name](activation=torch.tanh, dropout=0.3, norm_first=True)
    parts = list(model.modules())
    feed_forwards = [part for part in parts if isinstance(part, FeedForward)]
    attentions = [part for part in parts if isinstance(part, MultiHeadAttention)]
    layers = [part for part in parts if isinstance(part, EncoderLayer | DecoderLayer)]
    assert feed_forwards
    assert all(part.activation is torch.tanh for part in feed_forwards)
    assert all(part.p == 0.3 for part in parts if isinstance(part, nn.Dropout))
    assert all(part.attend.dropout == 0.3 for part in attentions)
    assert all(part.norm_first for part in layers)
    assert not any(getattr(part, "norm_first", False) for part in MAKE[name]().modules())


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_copied_activation_is_the_copys_own(kind):
    torchs = {"encoder": nn.TransformerEncoderLayer, "decoder": nn.TransformerDecoderLayer}[kind]
    layer = torchs(8, 2, 16, activation=nn.PReLU(), batch_first=True)
    ours = {"encoder": EncoderLayer, "decoder": DecoderLayer}[kind].from_torch(layer)
    with torch.no_grad():
        layer.activation.weight.fill_(7.0)
    assert ours.feed_forward.activation.weight.item() == 0.25


def test_padding_of_another_id_is_not_attended_to_either():
    """In the source and in the target: 3 is the padding, and 0 a token. Six layers each."""
    model = EncoderDecoder(9, 9, **SIZES, pad_id=3)
    output = model(torch.tensor([[5, 0, 3]]), torch.tensor([[3, 1, 0]]))
    assert len(output.encoder_weights) == len(output.self_weights) == 6
    for weights in (*output.encoder_weights, *output.cross_weights):
        assert not weights[..., 2].any() and weights[..., :2].all()
    for weights in output.self_weights:
        assert not weights[..., 0].any() and weights[..., 2, 1:].all()
    assert not model.source_embedding.table.weight[3].any()
    assert not model.target_embedding.table.weight[3].any()
