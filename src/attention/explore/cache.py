"""The cache as a decoder writes: what is kept of every sign, by heads or as latent rows."""

import copy

import torch
from ipywidgets import Dropdown, SelectionSlider
from matplotlib.figure import Figure
from torch import Tensor, nn

from attention.cached.grouped_query import pool_kv_heads
from attention.cached.latent import LatentAttention
from attention.explore.explorer import Explorer, Frame, explorer
from attention.multihead import MultiHeadAttention
from attention.plots import MINUS, PLUS, Picture
from attention.trained.dates import ANSWER, LETTERS, SIGN_NAMES, START, TransformerDates, load

DATES = {  # as it is read, and as it should be written
    "sunday, march the 4th 1973": "1973-03-04",
    "4 may 2031": "2031-05-04",
    "the eleventh of jun, 1981": "1981-06-11",
}
HEADS = {"multi-head": 4, "grouped-query, 2 heads": 2, "multi-query": 1}
KEY_AND_VALUE = ("12 numbers of the key", "12 numbers of the value")
LATENTS = {"latent, 24 numbers": 24, "latent, 12 numbers": 12}


def cache_explorer() -> Explorer:
    """Explore what the trained date transformer keeps of each sign, and what fewer numbers cost it.

    In both attentions of the decoder, its KV heads are averaged in groups, or its keys and values
    are made of latent rows. The model is not trained after that.

    Returns:
        The explorer, with controls ``attention``, ``length`` and ``date``.
    """
    whole = load("transformer").requires_grad_(False).double()

    def frame(attention: str, date: str) -> Frame:
        model = converted(whole, attention)
        letters = LETTERS.encode_batch([list(date)])
        signs = model.write(letters)
        read = torch.cat([torch.tensor([[START]]), signs[:, :-1]], dim=1)
        output = model.transformer(letters, read)
        layer = model.transformer.decoder.layers[0]
        x = model.transformer.target_embedding(read)
        x = layer.self_attention_norm(model.transformer.positional_encoding(x))
        kept, nbytes = cached(layer.self_attention, x, LATENTS.get(attention))
        return {
            "kept": kept,
            "nbytes": nbytes,
            "weights": output.self_weights[0][0].transpose(0, 1),  # (query, heads, key)
            "read": ["start", *(SIGN_NAMES[sign] for sign in signs[0, :-1])],
            "signs": [SIGN_NAMES[sign] for sign in signs[0]],
            "right": [*DATES[date], "end"],
        }

    def still(frame: Frame) -> Picture:
        return picture(frame, controls["attention"].value, controls["length"].value)

    controls = {
        "attention": Dropdown(
            options=[*HEADS, *LATENTS], value="grouped-query, 2 heads", description="attention"
        ),
        "length": SelectionSlider(options=range(1, ANSWER + 1), value=6, description="length"),
        "date": Dropdown(options=list(DATES), description="date"),
    }
    return explorer("cache", "What a cache keeps", controls, frame, still, reads=None)


def picture(frame: Frame, attention: str, length: int) -> Picture:
    """The rows kept of the signs read so far, and the weights that the last step gives to them."""
    kept, weights = frame["kept"][:length], frame["weights"][length - 1, :, :length]
    read, rows = frame["read"][:length], range(len(kept[0]))
    written = "".join(frame["signs"][:-1])
    figure = Figure(figsize=(6.5, 0.75 * length + 2))
    of_heads = attention in HEADS
    heights = [len(rows)] * length + [len(weights)]
    panels = figure.subplots(length + 1, 1, gridspec_kw={"height_ratios": heights})
    named = {f"kept of sign {i + 1}, “{sign}”": kept[i] for i, sign in enumerate(read)}
    last = f"weights of step {length}; the model ends up with {written}"
    for panel, (title, matrix) in zip(panels, {**named, last: weights}.items(), strict=True):
        largest = 1.0 if title == last else kept.abs().max()
        hue = torch.where(matrix[..., None] < 0, torch.tensor(MINUS), torch.tensor(PLUS))
        opacity = 0.7 * matrix.abs() / largest
        panel.imshow(torch.cat([hue, opacity[..., None]], -1).numpy(), aspect="auto")
        if title == last:
            labels, columns = [f"query head {i}" for i in range(len(matrix))], read
        elif of_heads:
            labels, columns = [f"key head {i}" for i in rows], KEY_AND_VALUE
            panel.axvline(matrix.shape[1] / 2 - 0.5, color="#888888")
        else:
            labels, columns = ["latent row"], []
        panel.set_yticks(range(len(labels)), labels, fontsize=8)
        at = [(i + 0.5) * matrix.shape[1] / len(columns) - 0.5 for i in range(len(columns))]
        panel.set_xticks(at, columns, fontsize=8)
        panel.set_title(title, fontsize=9)
        panel.tick_params(length=0)
        for edge in panel.spines.values():
            edge.set_color("#888888")
    figure.tight_layout()
    held = f"a latent row of {kept.shape[-1]} numbers"
    if of_heads:
        held = f"a row for each of {len(rows)} heads, with {' and '.join(KEY_AND_VALUE)}"
    alt = (
        f"What is kept of each of the first {length} signs that the date transformer reads: "
        f"{held}. Below, the weights that each of four heads of queries gives to these signs in "
        f"step {length}. The model writes {written}, and the right date is "
        f"{''.join(frame['right'][:-1])}."
    )
    return Picture(figure, alt, {**named, last: weights})


def converted(model: TransformerDates, attention: str) -> TransformerDates:
    """The model with other keys and values in both attentions of its decoder."""
    model = copy.deepcopy(model)
    layer = model.transformer.decoder.layers[0]
    for name in ("self_attention", "cross_attention"):
        part = getattr(layer, name)
        if attention in HEADS:
            part = pool_kv_heads(part, HEADS[attention])
            part.requires_grad_(False)
        else:
            up, down = factors(part, LATENTS[attention])
            for w, rows in zip((part.w_k, part.w_v), (up @ down).chunk(2), strict=True):
                w.weight.copy_(rows)
        setattr(layer, name, part)
    return model


def factors(attention: MultiHeadAttention, d_latent: int) -> tuple[Tensor, Tensor]:
    """The best two matrices of that width for keys and values: (2 · d_model, d_latent), and down.

    They are the best in the sum of squares, and are made of the largest singular values.
    """
    stacked = torch.cat([attention.w_k.weight, attention.w_v.weight])
    u, s, vh = torch.linalg.svd(stacked, full_matrices=False)
    # The sign of a singular pair is the library's choice: let the largest entry be above 0.
    sign = vh.gather(1, vh.abs().argmax(dim=1, keepdim=True)).sign()
    return u[:, :d_latent] * s[:d_latent] * sign[:d_latent, 0], vh[:d_latent] * sign[:d_latent]


def cached(attention: nn.Module, x: Tensor, d_latent: int | None) -> tuple[Tensor, int]:
    """What the book's caches hold of these rows: (seq, heads, numbers), and the bytes allocated.

    A head has its key and its value in one row. The bytes are those of float32.
    """
    seq = x.shape[1]
    if d_latent is None:
        cache = attention.new_cache(batch=1, max_length=seq)
        attention(x, cache=cache, causal=True)
        kept = torch.cat([cache.keys, cache.values], dim=-1)[0].transpose(0, 1)
    else:
        latent = latent_attention(attention, d_latent)
        cache = latent.new_cache(batch=1, max_length=seq)
        latent(x, cache=cache, causal=True)
        kept = cache.latents[0, :, None]
    return kept, cache.nbytes // 2  # computed in float64, and used in float32


def latent_attention(attention: MultiHeadAttention, d_latent: int) -> LatentAttention:
    """A `LatentAttention` with these queries, and with the best keys and values of its width."""
    latent = LatentAttention(attention.d_model, attention.n_heads, d_latent)
    latent.to(attention.w_q.weight).requires_grad_(False)
    up, latent.w_down.weight.data = factors(attention, d_latent)
    latent.w_k.weight.data, latent.w_v.weight.data = up.chunk(2)
    latent.w_q.load_state_dict(attention.w_q.state_dict())
    latent.w_o.load_state_dict(attention.w_o.state_dict())
    # A bias of the values comes out of the weighted sum as it went in.
    latent.w_o.bias += attention.w_o.weight @ attention.w_v.bias
    return latent
