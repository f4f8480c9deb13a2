"""Claims about attention that depend on d_key: each measured for every d_key, before training."""

from typing import NamedTuple

import torch
from ipywidgets import Dropdown, SelectionSlider
from torch import Tensor, nn
from torch.nn import functional as F

from attention import MultiHeadAttention
from attention.explore.explorer import Explorer, Frame, explorer
from attention.per_head import Head
from attention.plots import Picture, plot_matrices

D_KEYS = [2**k for k in range(2, 9)]  # 4 to 256
SEQ = 16  # tokens of a sequence
SAMPLES = 100  # sequences
D_MODEL = 256
DIVISORS = ["nothing", "√d_key", "d_key"]


class Claim(NamedTuple):
    """A claim, what is measured of it, and what would have to come out.

    Attributes:
        title: what the numbers are.
        names: the cases that are compared, two or three.
        values: (d_keys, cases).
        needs: the number that the claim needs at every d_key; None where it needs a rise.
        told: the same in words.
        logarithmic: whether the picture's scale doubles from line to line.
    """

    title: str
    names: list[str]
    values: Tensor
    needs: float | None
    told: str
    logarithmic: bool = False


def claims_explorer() -> Explorer:
    """Explore claims about attention by d_key: in which case, and at which size, each is true.

    Queries and keys are drawn as before training: components independent, with mean 0 and variance
    1; 16 tokens, 100 sequences.

    Returns:
        The explorer, with controls ``claim`` and ``d_key``.
    """

    def frame(claim: str) -> Frame:
        measured = CLAIMS[claim]()
        return {
            **measured._asdict(),
            "values": measured.values.double()[..., None],  # (d_keys, cases, 1)
            "d_keys": D_KEYS,
        }

    def still(frame: Frame) -> Picture:
        needs = "a rise" if frame["needs"] is None else f"{frame['needs']:g} at every d_key"
        return plot_matrices(
            {f"{frame['title']}; the claim needs {needs}": frame["values"][..., 0].T},
            rows=frame["names"],
            columns=[str(d_key) for d_key in D_KEYS],
            alt="The spread of the scores, a row for each divisor and a column for each d_key from "
            "4 to 256, in times of that at 16. Undivided it grows from a half to 4; divided by the "
            "root of d_key it stays at 1; divided by d_key it falls from 2 to a quarter.",
        )

    controls = {
        "claim": Dropdown(options=list(CLAIMS), value="divide by d_key", description="claim"),
        "d_key": SelectionSlider(options=D_KEYS, value=64, description="d_key"),
    }
    return explorer("claims", "Claims by d_key", controls, frame, still, reads=None)


def draw(d_key: int) -> tuple[Tensor, Tensor]:
    """Queries and keys of a new head, each (SAMPLES, SEQ, d_key); the same at every call."""
    generator = torch.Generator().manual_seed(d_key)
    return torch.randn(2, SAMPLES, SEQ, d_key, generator=generator, dtype=torch.float64).unbind()


def scores(d_key: int) -> list[Tensor]:
    """The scores divided by nothing, by √d_key and by d_key."""
    q, k = draw(d_key)
    return [q @ k.mT / divisor for divisor in (1.0, d_key**0.5, d_key)]


def table(measure) -> Tensor:
    """What `measure` gives for each d_key, (d_keys, cases)."""
    return torch.stack([torch.stack(measure(d_key)) for d_key in D_KEYS])


def divided() -> Claim:
    spread = table(lambda d_key: [s.std() for s in scores(d_key)])
    return Claim(
        "Spread of the scores, in times of that at d_key 16; divided by …",
        DIVISORS,
        spread / spread[D_KEYS.index(16)],
        1.0,
        "The divisor is there to keep the spread the same at every d_key.",
        logarithmic=True,
    )


def bounded() -> Claim:
    def measure(d_key: int) -> list[Tensor]:
        dots = scores(d_key)[0]
        of_length_1 = [F.normalize(each, dim=-1) for each in draw(d_key)]
        cosines = of_length_1[0] @ of_length_1[1].mT
        return [(each.abs() <= 1 + 1e-9).double().mean() for each in (dots, cosines)]

    return Claim(
        "Share of dot products between −1 and 1",
        ["as they are", "length 1"],
        table(measure),
        1.0,
        "The claim needs all of them. “Length 1”: queries and keys are scaled to length 1 before.",
    )


def one_position() -> Claim:
    def measure(d_key: int) -> list[Tensor]:
        return [(s.softmax(-1) > 0.05).double().sum(-1).mean() for s in scores(d_key)]

    return Claim(
        "Keys with more than 5 % of the weight, of 16; divided by …",
        DIVISORS,
        table(measure),
        1.0,
        "The claim needs one key for each query.",
    )


def itself() -> Claim:
    def measure(d_key: int) -> list[Tensor]:
        q, k = draw(d_key)
        unit = F.normalize(q, dim=-1)
        pairs = ((q, k), (q, q), (unit, unit))
        own = torch.arange(SEQ)
        return [((a @ b.mT).argmax(-1) == own).double().mean() for a, b in pairs]

    return Claim(
        "Share of tokens whose largest weight is their own",
        ["Q and K", "Q = K", "Q = K, length 1"],
        table(measure),
        1.0,
        "The claim needs all of them. “Q = K”: one matrix makes both.",
    )


def parameters() -> Claim:
    def size(module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    def measure(d_key: int) -> list[Tensor]:
        n_heads = D_MODEL // d_key
        with torch.device("meta"):
            split = size(MultiHeadAttention(D_MODEL, n_heads))
            wide = n_heads * size(Head(D_MODEL, 64)) + size(nn.Linear(64 * n_heads, D_MODEL))
        return [torch.tensor(count / 1000) for count in (split, wide)]

    return Claim(
        "Thousands of parameters, with n_heads = 256 / d_key",
        ["d_key wide", "64 wide"],
        table(measure),
        None,
        "d_model is 256. The claim needs a rise from right to left, where the heads are more.",
        logarithmic=True,
    )


CLAIMS = {
    "divide by d_key": divided,
    "dots from −1 to 1": bounded,
    "a head sees one place": one_position,
    "a token sees itself": itself,
    "heads cost parameters": parameters,
}
