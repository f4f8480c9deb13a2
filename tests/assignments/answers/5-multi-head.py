"""Answers to 5-multi-head: mistakes that students make, and right ones written in another way."""

from tests.assignments.submissions import Mistake, Right

LAYERS = """class SilentHeads(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_key = n_heads, d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, self.d_key)).transpose(1, 2)

    def attend(self, query, key, value, mask, scale=None):
        q, k = self.split(self.w_q(query)), self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        scores = q @ k.mT / (scale or self.d_key**0.5)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        return weights @ v, weights

"""

SPLIT = """def step(module, new, cache=None):
    def split(x):
        return x.unflatten(-1, (module.n_heads, -1)).transpose(1, 2)

"""

MISTAKES = [
    Mistake(
        "rows of w_o instead of its columns",
        cell="silence",
        code=LAYERS
        + """    def forward(self, query, key, value, mask=None, silent=()):
        heads, weights = self.attend(query, key, value, mask)
        output = self.w_o.bias
        for h in range(self.n_heads):
            if h not in silent:
                rows = slice(h * self.d_key, (h + 1) * self.d_key)
                output = output + heads[:, h] @ self.w_o.weight[rows]
        return output, weights
""",
        says="Only w_o is used the wrong way round",
    ),
    Mistake(
        "the weights of silent heads are set to 0",
        cell="silence",
        code=LAYERS
        + """    def forward(self, query, key, value, mask=None, silent=()):
        heads, weights = self.attend(query, key, value, mask)
        heads[:, list(silent)] = 0.0
        weights = weights.clone()
        weights[:, list(silent)] = 0.0
        return self.w_o(heads.transpose(1, 2).flatten(2)), weights
""",
        says="A silent head still looks",
    ),
    Mistake(
        "the bias goes with the heads",
        cell="silence",
        code=LAYERS
        + """    def forward(self, query, key, value, mask=None, silent=()):
        heads, weights = self.attend(query, key, value, mask)
        if silent:
            heads[:, list(silent)] = 0.0
            return heads.transpose(1, 2).flatten(2) @ self.w_o.weight.T, weights
        return self.w_o(heads.transpose(1, 2).flatten(2)), weights
""",
        says="The bias of w_o is silenced too.",
    ),
    Mistake(
        "columns of w_o set to 0 for good",
        cell="silence",
        code=LAYERS
        + """    def forward(self, query, key, value, mask=None, silent=()):
        for h in silent:
            self.w_o.weight.data[:, h * self.d_key : (h + 1) * self.d_key] = 0.0
        heads, weights = self.attend(query, key, value, mask)
        return self.w_o(heads.transpose(1, 2).flatten(2)), weights
""",
        says="the head never speaks again",
    ),
    Mistake(
        "the prompt sees its future",
        cell="step",
        code=SPLIT
        + """    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return module.w_o((weights @ v).transpose(1, 2).flatten(2)), (k, v)
""",
        says="the new tokens see each other's future",
    ),
    Mistake(
        "the cache is not used",
        cell="step",
        code="""from attention import causal_mask


def step(module, new, cache=None):
    output, _ = module(new, mask=causal_mask(new.shape[1]))
    return output, (new, new)
""",
        says="what came before is lost",
    ),
    Mistake(
        "aligned with the first key",
        cell="step",
        code=SPLIT
        + """    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return module.w_o(heads.transpose(1, 2).flatten(2)), (k, v)
""",
        says="as torch's `is_causal` does it",
    ),
    Mistake(
        "everything is projected again",
        cell="step",
        code="""from attention import causal_mask


def step(module, new, cache=None):
    text = new if cache is None else torch.cat([cache, new], dim=1)
    return module(new, text, mask=causal_mask(new.shape[1], text.shape[1]))[0], text
""",
        says="Keep the keys and the values in the cache.",
    ),
    Mistake(
        "the cache that came in is changed",
        cell="step",
        code="from attention import causal_mask\n\n\n"
        + SPLIT
        + """    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    cache = [] if cache is None else cache
    cache.append((k, v))
    k = torch.cat([k for k, v in cache], dim=2)
    v = torch.cat([v for k, v in cache], dim=2)
    mask = causal_mask(q.shape[2], k.shape[2])
    heads = nn.functional.scaled_dot_product_attention(q, k, v, mask)
    return module.w_o(heads.transpose(1, 2).flatten(2)), cache
""",
        says="A second continuation from the same cache gives another output.",
    ),
    Mistake(
        "the cache in a global name",
        cell="step",
        code="from attention import causal_mask\n\nKEPT = []\n\n\n"
        + SPLIT
        + """    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    if cache is None:
        KEPT.clear()
    KEPT.append((k, v))
    k, v = (torch.cat(parts, dim=2) for parts in zip(*KEPT))
    mask = causal_mask(q.shape[2], k.shape[2])
    heads = nn.functional.scaled_dot_product_attention(q, k, v, mask)
    return module.w_o(heads.transpose(1, 2).flatten(2)), True
""",
        says="something is kept outside of the cache",
    ),
    Mistake(
        "the cache in the module",
        cell="step",
        code="from attention import causal_mask\n\n\n"
        + SPLIT
        + """    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    module.kept = [] if cache is None else module.kept[:cache]
    module.kept.append((k, v))
    k, v = (torch.cat(parts, dim=2) for parts in zip(*module.kept))
    mask = causal_mask(q.shape[2], k.shape[2])
    heads = nn.functional.scaled_dot_product_attention(q, k, v, mask)
    return module.w_o(heads.transpose(1, 2).flatten(2)), len(module.kept)
""",
        says="something is kept outside of the cache",
    ),
    Mistake(
        "a table that is filled in place",
        cell="step",
        code="from attention import causal_mask\n\n\n"
        + SPLIT
        + """    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    if cache is None:
        cache = torch.zeros(2, *k.shape[:2], 64, k.shape[3]), 0
    table, earlier = cache
    stop = earlier + new.shape[1]
    table[:, :, :, earlier:stop] = torch.stack([k, v])
    mask = causal_mask(q.shape[2], stop)
    heads = nn.functional.scaled_dot_product_attention(q, *table[:, :, :, :stop], mask)
    return module.w_o(heads.transpose(1, 2).flatten(2)), (table, stop)
""",
        says="nothing is written into a tensor of it",
    ),
    Mistake(
        "the column for every layer",
        cell="head-of",
        code="""def head_of(layer, row, column, d_model, n_heads):
    return column // (d_model // n_heads)
""",
        says="You go by the column everywhere.",
    ),
    Mistake(
        "the row for every layer",
        cell="head-of",
        code="""def head_of(layer, row, column, d_model, n_heads):
    return row // (d_model // n_heads)
""",
        says="You go by the row everywhere.",
    ),
    Mistake(
        "heads dealt out like cards",
        cell="head-of",
        code="""def head_of(layer, row, column, d_model, n_heads):
    return (column if layer == "w_o" else row) % n_heads
""",
        says="Heads are not dealt out like cards",
    ),
    Mistake(
        "rounds to the nearest head",
        cell="head-of",
        code="""def head_of(layer, row, column, d_model, n_heads):
    d_key = d_model / n_heads
    place = column if layer == "w_o" else row
    return min(round(place / d_key), n_heads - 1)
""",
        says="You round to the nearest head.",
    ),
    Mistake(
        "w_v read as w_o",
        cell="head-of",
        code="""def head_of(layer, row, column, d_model, n_heads):
    d_key = d_model // n_heads
    if layer in ("w_q", "w_k"):
        return row // d_key
    return column // d_key
""",
        says="You read w_v as w_o.",
    ),
    Mistake(
        "only shapes are compared",
        cell="agrees",
        code="""def agrees(candidate, module):
    query, key, value = torch.randn(3, 2, 5, module.d_model)
    return candidate(query, key, value, None).shape == module(query, key, value)[0].shape
""",
        says="compare the values",
    ),
    Mistake(
        "self-attention alone",
        cell="agrees",
        code="""def agrees(candidate, module):
    x = torch.randn(2, 5, module.d_model)
    mask = torch.rand(2, 1, 5, 5) > 0.3
    mask[..., 0] = True
    for allowed in (None, mask):
        expected, _ = module(x, x, x, allowed)
        if not torch.allclose(candidate(x, x, x, allowed), expected, atol=1e-4):
            return False
    return True
""",
        says="Give it a value that is not the key.",
    ),
    Mistake(
        "no mask",
        cell="agrees",
        code="""def agrees(candidate, module):
    query, key, value = torch.randn(3, 2, 5, module.d_model)
    expected, _ = module(query, key, value)
    return torch.allclose(candidate(query, key, value, None), expected, atol=1e-4)
""",
        says="Give it a mask.",
    ),
    Mistake(
        "one mask for all sentences",
        cell="agrees",
        code="""from attention import causal_mask


def agrees(candidate, module):
    query, key, value = torch.randn(3, 2, 5, module.d_model)
    mask = causal_mask(5)
    expected, _ = module(query, key, value, mask)
    return torch.allclose(candidate(query, key, value, mask), expected, atol=1e-4)
""",
        says="masks that differ",
    ),
    Mistake(
        "no tolerance",
        cell="agrees",
        code="""def agrees(candidate, module):
    query, key, value = torch.randn(3, 4, 50, module.d_model)
    mask = torch.rand(4, 1, 50, 50) > 0.3
    expected, _ = module(query, key, value, mask)
    return torch.equal(candidate(query, key, value, mask), expected)
""",
        says="compare with a tolerance",
    ),
    Mistake(
        "the mean of the difference",
        cell="agrees",
        code="""def agrees(candidate, module):
    query = torch.randn(3, 5, module.d_model)
    key, value = torch.randn(2, 3, 7, module.d_model)
    mask = torch.rand(3, 1, 5, 7) > 0.3
    mask[..., 0] = True
    for allowed in (None, mask):
        expected, _ = module(query, key, value, allowed)
        if not abs((candidate(query, key, value, allowed) - expected).mean()) < 1e-4:
            return False
    return True
""",
        says="One returns the right numbers in another order",
    ),
    Mistake(
        "never without a mask",
        cell="agrees",
        code="""def agrees(candidate, module):
    query = torch.randn(3, 5, module.d_model)
    key, value = torch.randn(2, 3, 7, module.d_model)
    mask = torch.rand(3, 1, 5, 7) > 0.3
    mask[..., 0] = True
    for allowed in (mask, mask[:1]):
        expected, _ = module(query, key, value, allowed)
        if not torch.allclose(candidate(query, key, value, allowed), expected, atol=1e-4):
            return False
    return True
""",
        says="where no mask is given",
    ),
    Mistake(
        "the last row alone",
        cell="agrees",
        code="""def agrees(candidate, module):
    query = torch.randn(3, 5, module.d_model)
    key, value = torch.randn(2, 3, 7, module.d_model)
    mask = torch.rand(3, 1, 5, 7) > 0.3
    mask[..., 0] = True
    for allowed in (None, mask):
        expected, _ = module(query, key, value, allowed)
        yours = candidate(query, key, value, allowed)
        if not torch.allclose(yours[:, -1], expected[:, -1], atol=1e-4):
            return False
    return True
""",
        says="right for the last query alone",
    ),
]

RIGHT = [
    Right(
        "a sum over heads",
        cell="silence",
        code=LAYERS
        + """    def forward(self, query, key, value, mask=None, silent=()):
        heads, weights = self.attend(query, key, value, mask)
        output = self.w_o.bias.expand(query.shape)
        for h in set(range(self.n_heads)) - set(silent):
            columns = slice(h * self.d_key, (h + 1) * self.d_key)
            output = output + heads[:, h] @ self.w_o.weight[:, columns].T
        return output, weights
""",
    ),
    Right(
        "columns of w_o set to 0, by einsum",
        cell="silence",
        code=LAYERS
        + """    def forward(self, query, key, value, mask=None, silent=()):
        heads, weights = self.attend(query, key, value, mask)
        w_o = self.w_o.weight.unflatten(1, (self.n_heads, -1)).clone()
        w_o[:, list(silent)] = 0.0
        return torch.einsum("bhqd,mhd->bqm", heads, w_o) + self.w_o.bias, weights
""",
    ),
    Right(
        "torch's function with a mask, lists joined anew",
        cell="step",
        code="from attention import causal_mask\n\n\n"
        + SPLIT
        + """    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    cache = [*(cache or []), (k, v)]
    k = torch.cat([k for k, v in cache], dim=2)
    v = torch.cat([v for k, v in cache], dim=2)
    heads = nn.functional.scaled_dot_product_attention(
        q, k, v, causal_mask(q.shape[2], k.shape[2])
    )
    return module.w_o(heads.transpose(1, 2).flatten(2)), cache
""",
    ),
    Right(
        "a table of heads",
        cell="head-of",
        code="""def head_of(layer, row, column, d_model, n_heads):
    owner = [head for head in range(n_heads) for _ in range(d_model // n_heads)]
    return owner[{"w_o": column}.get(layer, row)]
""",
    ),
    Right(
        "many small tests, differences in float64",
        cell="agrees",
        code="""from attention import causal_mask


def agrees(candidate, module):
    for seed in range(5):
        torch.manual_seed(seed)
        query = torch.randn(4, 3, module.d_model)
        key, value = torch.randn(2, 4, 8, module.d_model)
        lengths = torch.tensor([1, 8, 4, 6])
        padding = (torch.arange(8) < lengths[:, None])[:, None, None]
        for mask in (None, padding, padding & causal_mask(3, 8)):
            expected = module(query, key, value, mask)[0].double()
            apart = candidate(query, key, value, mask).double() - expected
            if not apart.abs().max() < 1e-4:  # NaN is not
                return False
    return True
""",
    ),
]
