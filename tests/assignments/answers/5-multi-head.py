"""Answers to 5-multi-head: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "silence": """class SilentHeads(nn.Module):
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

    def forward(self, query, key, value, mask=None, silent=()):
        heads, weights = self.attend(query, key, value, mask)
        w_o = self.w_o.weight.unflatten(1, (self.n_heads, -1)).clone()
        w_o[:, list(silent)] = 0.0
        return torch.einsum("bhqd,mhd->bqm", heads, w_o) + self.w_o.bias, weights""",
    "step": """from attention import causal_mask


def step(module, new, cache=None):
    def split(x):
        return x.unflatten(-1, (module.n_heads, -1)).transpose(1, 2)

    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    cache = [*(cache or []), (k, v)]
    k = torch.cat([k for k, v in cache], dim=2)
    v = torch.cat([v for k, v in cache], dim=2)
    heads = nn.functional.scaled_dot_product_attention(
        q, k, v, causal_mask(q.shape[2], k.shape[2])
    )
    return module.w_o(heads.transpose(1, 2).flatten(2)), cache""",
    "head-of": """def head_of(layer, row, column, d_model, n_heads):
    owner = [head for head in range(n_heads) for _ in range(d_model // n_heads)]
    return owner[{"w_o": column}.get(layer, row)]""",
    "agrees": """from attention import causal_mask


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
    return True""",
}

MISTAKES = [
    (
        "rows of w_o instead of its columns",
        {
            """w_o = self.w_o.weight.unflatten(1, (self.n_heads, -1)).clone()
        w_o[:, list(silent)] = 0.0
        return torch.einsum("bhqd,mhd->bqm", heads, w_o) + self.w_o.bias""": """output = self.w_o.bias
        for h in range(self.n_heads):
            if h not in silent:
                rows = slice(h * self.d_key, (h + 1) * self.d_key)
                output = output + heads[:, h] @ self.w_o.weight[rows]
        return output"""
        },
        "Only w_o is used the wrong way round",
    ),
    (
        "the weights of silent heads are set to 0",
        {
            "w_o = self.w_o.weight.unflatten(1, (self.n_heads, -1))": """heads[:, list(silent)] = 0.0
        weights = weights""",
            "w_o[": "weights[",
            'torch.einsum("bhqd,mhd->bqm", heads, w_o) + self.w_o.bias': "self.w_o(heads.transpose(1, 2).flatten(2))",
        },
        "A silent head still looks",
    ),
    (
        "the bias goes with the heads",
        {
            """w_o = self.w_o.weight.unflatten(1, (self.n_heads, -1)).clone()
        w_o[:, list(silent)] = 0.0
        return torch.einsum("bhqd,mhd->bqm", heads, w_o) + self.w_o.bias""": """if silent:
            heads[:, list(silent)] = 0.0
            return heads.transpose(1, 2).flatten(2) @ self.w_o.weight.T, weights
        return self.w_o(heads.transpose(1, 2).flatten(2))"""
        },
        "The bias of w_o is silenced too.",
    ),
    (
        "columns of w_o set to 0 for good",
        {
            "heads, weights": """for h in silent:
            self.w_o.weight.data[:, h * self.d_key : (h + 1) * self.d_key] = 0.0
        heads, weights""",
            """w_o = self.w_o.weight.unflatten(1, (self.n_heads, -1)).clone()
        w_o[:, list(silent)] = 0.0
        return torch.einsum("bhqd,mhd->bqm", heads, w_o) + self.w_o.bias""": "return self.w_o(heads.transpose(1, 2).flatten(2))",
        },
        "the head never speaks again",
    ),
    (
        "the prompt sees its future",
        {
            "step": """def step(module, new, cache=None):
    def split(x):
        return x.unflatten(-1, (module.n_heads, -1)).transpose(1, 2)

    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return module.w_o((weights @ v).transpose(1, 2).flatten(2)), (k, v)"""
        },
        "the new tokens see each other's future",
    ),
    (
        "the cache is not used",
        {
            "step": """from attention import causal_mask


def step(module, new, cache=None):
    output, _ = module(new, mask=causal_mask(new.shape[1]))
    return output, (new, new)"""
        },
        "what came before is lost",
    ),
    (
        "aligned with the first key",
        {
            "step": """def step(module, new, cache=None):
    def split(x):
        return x.unflatten(-1, (module.n_heads, -1)).transpose(1, 2)

    q, k, v = split(module.w_q(new)), split(module.w_k(new)), split(module.w_v(new))
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return module.w_o(heads.transpose(1, 2).flatten(2)), (k, v)"""
        },
        "as torch's `is_causal` does it",
    ),
    (
        "everything is projected again",
        {
            "step": """from attention import causal_mask


def step(module, new, cache=None):
    text = new if cache is None else torch.cat([cache, new], dim=1)
    return module(new, text, mask=causal_mask(new.shape[1], text.shape[1]))[0], text"""
        },
        "Keep the keys and the values in the cache.",
    ),
    (
        "the cache that came in is changed",
        {
            "*(cache or []), (k, v)]": """] if cache is None else cache
    cache.append((k, v))""",
            """heads = nn.functional.scaled_dot_product_attention(
        q, k, v, causal_mask(q.shape[2], k.shape[2])""": """mask = causal_mask(q.shape[2], k.shape[2])
    heads = nn.functional.scaled_dot_product_attention(q, k, v, mask""",
        },
        "A second continuation from the same cache gives another output.",
    ),
    (
        "the cache in a global name",
        {
            "import causal_mask": """import causal_mask

KEPT = []""",
            """cache = [*(cache or []), (k, v)]
    k = torch.cat([k for k, v in cache], dim=2)
    v = torch.cat([v for k, v in cache], dim=2)
    heads = nn.functional.scaled_dot_product_attention(
        q, k, v, causal_mask(q.shape[2], k.shape[2])""": """if cache is None:
        KEPT.clear()
    KEPT.append((k, v))
    k, v = (torch.cat(parts, dim=2) for parts in zip(*KEPT))
    mask = causal_mask(q.shape[2], k.shape[2])
    heads = nn.functional.scaled_dot_product_attention(q, k, v, mask""",
            "), cache": "), True",
        },
        "something is kept outside of the cache",
    ),
    (
        "the cache in the module",
        {
            """cache = [*(cache or []), (k, v)]
    k = torch.cat([k for k, v in cache], dim=2)
    v = torch.cat([v for k, v in cache], dim=2)
    heads = nn.functional.scaled_dot_product_attention(
        q, k, v, causal_mask(q.shape[2], k.shape[2])""": """module.kept = [] if cache is None else module.kept[:cache]
    module.kept.append((k, v))
    k, v = (torch.cat(parts, dim=2) for parts in zip(*module.kept))
    mask = causal_mask(q.shape[2], k.shape[2])
    heads = nn.functional.scaled_dot_product_attention(q, k, v, mask""",
            "), cache": "), len(module.kept)",
        },
        "something is kept outside of the cache",
    ),
    (
        "a table that is filled in place",
        {
            """cache = [*(cache or []), (k, v)]
    k = torch.cat([k for k, v in cache], dim=2)
    v = torch.cat([v for k, v in cache], dim=2""": """if cache is None:
        cache = torch.zeros(2, *k.shape[:2], 64, k.shape[3]), 0
    table, earlier = cache
    stop = earlier + new.shape[1]
    table[:, :, :, earlier:stop] = torch.stack([k, v])
    mask = causal_mask(q.shape[2], stop""",
            "k, v, causal_mask(q.shape[2], k.shape[2])": "*table[:, :, :, :stop], mask",
            "), cache": "), (table, stop)",
        },
        "nothing is written into its tensors",
    ),
    (
        "the column for every layer",
        {
            "head-of": """def head_of(layer, row, column, d_model, n_heads):
    return column // (d_model // n_heads)"""
        },
        "You go by the column everywhere.",
    ),
    (
        "the row for every layer",
        {
            "head-of": """def head_of(layer, row, column, d_model, n_heads):
    return row // (d_model // n_heads)"""
        },
        "You go by the row everywhere.",
    ),
    (
        "heads dealt out like cards",
        {
            "head-of": """def head_of(layer, row, column, d_model, n_heads):
    return (column if layer == "w_o" else row) % n_heads"""
        },
        "Heads are not dealt out like cards",
    ),
    (
        "rounds to the nearest head",
        {
            "head-of": """def head_of(layer, row, column, d_model, n_heads):
    d_key = d_model / n_heads
    place = column if layer == "w_o" else row
    return min(round(place / d_key), n_heads - 1)"""
        },
        "You round to the nearest head.",
    ),
    (
        "w_v read as w_o",
        {
            "head-of": """def head_of(layer, row, column, d_model, n_heads):
    d_key = d_model // n_heads
    if layer in ("w_q", "w_k"):
        return row // d_key
    return column // d_key"""
        },
        "You read w_v as w_o.",
    ),
    (
        "only shapes are compared",
        {
            "agrees": """def agrees(candidate, module):
    query, key, value = torch.randn(3, 2, 5, module.d_model)
    return candidate(query, key, value, None).shape == module(query, key, value)[0].shape"""
        },
        "compare the values",
    ),
    (
        "self-attention alone",
        {
            "agrees": """def agrees(candidate, module):
    x = torch.randn(2, 5, module.d_model)
    mask = torch.rand(2, 1, 5, 5) > 0.3
    mask[..., 0] = True
    for allowed in (None, mask):
        expected, _ = module(x, x, x, allowed)
        if not torch.allclose(candidate(x, x, x, allowed), expected, atol=1e-4):
            return False
    return True"""
        },
        "Give it a value that is not the key.",
    ),
    (
        "no mask",
        {
            "agrees": """def agrees(candidate, module):
    query, key, value = torch.randn(3, 2, 5, module.d_model)
    expected, _ = module(query, key, value)
    return torch.allclose(candidate(query, key, value, None), expected, atol=1e-4)"""
        },
        "Give it a mask.",
    ),
    (
        "one mask for all sentences",
        {
            "agrees": """from attention import causal_mask


def agrees(candidate, module):
    query, key, value = torch.randn(3, 2, 5, module.d_model)
    mask = causal_mask(5)
    expected, _ = module(query, key, value, mask)
    return torch.allclose(candidate(query, key, value, mask), expected, atol=1e-4)"""
        },
        "masks that differ",
    ),
    (
        "no tolerance",
        {
            "agrees": """def agrees(candidate, module):
    query, key, value = torch.randn(3, 4, 50, module.d_model)
    mask = torch.rand(4, 1, 50, 50) > 0.3
    expected, _ = module(query, key, value, mask)
    return torch.equal(candidate(query, key, value, mask), expected)"""
        },
        "compare with a tolerance",
    ),
    (
        "the mean of the difference",
        {
            "agrees": """def agrees(candidate, module):
    query = torch.randn(3, 5, module.d_model)
    key, value = torch.randn(2, 3, 7, module.d_model)
    mask = torch.rand(3, 1, 5, 7) > 0.3
    mask[..., 0] = True
    for allowed in (None, mask):
        expected, _ = module(query, key, value, allowed)
        if not abs((candidate(query, key, value, allowed) - expected).mean()) < 1e-4:
            return False
    return True"""
        },
        "One returns the right numbers in another order",
    ),
    (
        "never without a mask",
        {
            "agrees": """def agrees(candidate, module):
    query = torch.randn(3, 5, module.d_model)
    key, value = torch.randn(2, 3, 7, module.d_model)
    mask = torch.rand(3, 1, 5, 7) > 0.3
    mask[..., 0] = True
    for allowed in (mask, mask[:1]):
        expected, _ = module(query, key, value, allowed)
        if not torch.allclose(candidate(query, key, value, allowed), expected, atol=1e-4):
            return False
    return True"""
        },
        "where no mask is given",
    ),
    (
        "the last row alone",
        {
            "agrees": """def agrees(candidate, module):
    query = torch.randn(3, 5, module.d_model)
    key, value = torch.randn(2, 3, 7, module.d_model)
    mask = torch.rand(3, 1, 5, 7) > 0.3
    mask[..., 0] = True
    for allowed in (None, mask):
        expected, _ = module(query, key, value, allowed)
        yours = candidate(query, key, value, allowed)
        if not torch.allclose(yours[:, -1], expected[:, -1], atol=1e-4):
            return False
    return True"""
        },
        "right for the last query alone",
    ),
]

RIGHT = [
    (
        "a sum over heads",
        {
            """w_o = self.w_o.weight.unflatten(1, (self.n_heads, -1)).clone()
        w_o[:, list(silent)] = 0.0
        return torch.einsum("bhqd,mhd->bqm", heads, w_o) + self.w_o.bias""": """output = self.w_o.bias.expand(query.shape)
        for h in set(range(self.n_heads)) - set(silent):
            columns = slice(h * self.d_key, (h + 1) * self.d_key)
            output = output + heads[:, h] @ self.w_o.weight[:, columns].T
        return output"""
        },
    ),
]
