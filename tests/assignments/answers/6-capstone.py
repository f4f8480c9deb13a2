"""Answers to 6-capstone: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "my-attention": """from attention import merge_heads, scaled_dot_product_attention, split_heads


class MyAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.w_q(query), self.n_heads)
        k = split_heads(self.w_k(key), self.n_heads)
        v = split_heads(self.w_v(value), self.n_heads)
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.w_o(merge_heads(heads)), weights""",
    "keys-in-use": """def keys_in_use(weights, is_token):
    batch, heads, queries, _ = weights.shape
    total = torch.zeros(heads)
    for b in range(batch):
        for q in range(queries):
            if is_token[b, q]:
                for h in range(heads):
                    row = weights[b, h, q][weights[b, h, q] > 0]
                    total[h] += 2 ** -(row * row.log2()).sum()
    return total / is_token.sum()""",
}

MISTAKES = [
    (
        "the scores are not scaled",
        {
            "my-attention": """class MyAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_key = n_heads, d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, self.d_key)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k = self.split(self.w_q(query)), self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        scores = q @ k.mT
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights"""
        },
        "The scores are not scaled.",
    ),
    (
        "torch's polarity in the book's module",
        {
            "my-attention": """class MyAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_key = n_heads, d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, self.d_key)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k = self.split(self.w_q(query)), self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        scores = q @ k.mT / self.d_key**0.5
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights"""
        },
        "The mask is the wrong way round",
    ),
    (
        "a softmax that overflows",
        {
            "my-attention": """class MyAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_key = d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.n_heads, self.d_key).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self.split(self.w_q(query))
        k = self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        scores = q @ k.transpose(-2, -1) / self.d_key**0.5
        raised = torch.exp(scores)
        if mask is not None:
            raised = raised * mask
        weights = raised / raised.sum(dim=-1, keepdim=True)
        found = weights @ v
        merged = found.transpose(1, 2).flatten(2)
        return self.w_o(merged), weights"""
        },
        "With scores of several hundred there is NaN",
    ),
    (
        "stacked in another order",
        {
            "copy-weights": """def copy_weights(theirs, mine):
    with torch.no_grad():
        k, q, v = theirs.in_proj_weight.chunk(3)
        for layer, weight in zip((mine.w_q, mine.w_k, mine.w_v), (q, k, v)):
            layer.weight.copy_(weight)
            layer.bias.zero_()
        mine.w_o.weight.copy_(theirs.out_proj.weight)
        mine.w_o.bias.zero_()
        if theirs.in_proj_bias is not None:
            k, q, v = theirs.in_proj_bias.chunk(3)
            for layer, bias in zip((mine.w_q, mine.w_k, mine.w_v), (q, k, v)):
                layer.bias.copy_(bias)
            mine.w_o.bias.copy_(theirs.out_proj.bias)"""
        },
        "w_q.weight holds what belongs in w_k.weight.",
    ),
    (
        "transposed",
        {
            "(weight": """(weight.T)
            layer.bias.zero_(""",
            ".weight)": """.weight.T)
        mine.w_o.bias.zero_()""",
        },
        "w_q.weight is transposed",
    ),
    (
        "biases forgotten",
        {
            "copy-weights": """def copy_weights(theirs, mine):
    with torch.no_grad():
        for layer, weight in zip((mine.w_q, mine.w_k, mine.w_v), theirs.in_proj_weight.chunk(3)):
            layer.weight.copy_(weight)
        mine.w_o.weight.copy_(theirs.out_proj.weight)"""
        },
        "w_q.bias holds no bias of theirs.",
    ),
    (
        "a missing bias left as it was",
        {
            "copy-weights": """def copy_weights(theirs, mine):
    layers = (mine.w_q, mine.w_k, mine.w_v)
    with torch.no_grad():
        for layer, weight in zip(layers, theirs.in_proj_weight.chunk(3)):
            layer.weight.copy_(weight)
        mine.w_o.weight.copy_(theirs.out_proj.weight)
        if theirs.in_proj_bias is not None:
            for layer, bias in zip(layers, theirs.in_proj_bias.chunk(3)):
                layer.bias.copy_(bias)
            mine.w_o.bias.copy_(theirs.out_proj.bias)"""
        },
        "w_q.bias is not 0",
    ),
    (
        "the same memory",
        {
            "copy-weights": """def copy_weights(theirs, mine):
    layers = (mine.w_q, mine.w_k, mine.w_v)
    for layer, weight in zip(layers, theirs.in_proj_weight.data.chunk(3)):
        layer.weight.data = weight
    mine.w_o.weight.data = theirs.out_proj.weight.data
    for layer in (*layers, mine.w_o):
        layer.bias.data.zero_()
    if theirs.in_proj_bias is not None:
        for layer, bias in zip(layers, theirs.in_proj_bias.data.chunk(3)):
            layer.bias.data = bias
        mine.w_o.bias.data = theirs.out_proj.bias.data"""
        },
        "shares its memory with theirs",
    ),
    (
        "parameters that ask for no gradient",
        {
            "copy-weights": """def copy_weights(theirs, mine):
    def held(tensor):
        return nn.Parameter(tensor.detach().clone(), requires_grad=False)

    d_model = theirs.embed_dim
    layers = (mine.w_q, mine.w_k, mine.w_v)
    biases = theirs.in_proj_bias if theirs.in_proj_bias is not None else torch.zeros(3 * d_model)
    for layer, weight, bias in zip(layers, theirs.in_proj_weight.chunk(3), biases.chunk(3)):
        layer.weight, layer.bias = held(weight), held(bias)
    mine.w_o.weight = held(theirs.out_proj.weight)
    bias = theirs.out_proj.bias
    mine.w_o.bias = held(bias if bias is not None else torch.zeros(d_model))"""
        },
        "asks for no gradient",
    ),
    (
        "a method instead of weights",
        {
            "copy-weights": """def copy_weights(theirs, mine):
    def forward(query, key=None, value=None, mask=None, **_):
        key = query if key is None else key
        value = key if value is None else value
        if mask is not None:
            full = (query.shape[0], theirs.num_heads, query.shape[1], key.shape[1])
            mask = ~mask.expand(full).flatten(0, 1)
        return theirs(query, key, value, attn_mask=mask, average_attn_weights=False)

    mine.forward = forward"""
        },
        "its parameters do not hold the weights",
    ),
    ("True still means may attend", {"~mask": "mask"}, "Its True means may not attend."),
    (
        "head after head",
        {
            "return ~mask.expand(batch, n_heads, n_queries, n_keys)": """mask = mask.expand(batch, n_heads, n_queries, n_keys)
    return ~mask.transpose(0, 1)"""
        },
        "the maps are in the wrong order",
    ),
    (
        "turned only",
        {"mask.expand(batch, n_heads, n_queries, n_keys).flatten(0, 1)": "mask"},
        "(batch · n_heads, query, key) is expected",
    ),
    (
        "the mask of head 0 for all heads",
        {
            "return ~mask.expand(batch, n_heads, n_queries, n_keys).flatten(0, 1": """mask = mask.expand(batch, n_heads, n_queries, n_keys)
    return ~mask[:, 0].repeat_interleave(n_heads, dim=0"""
        },
        "Each head keeps its own mask.",
    ),
    (
        "two axes taken for padding",
        {
            "return ~mask.expand(batch, n_heads, n_queries, n_keys).flatten(0, 1": """if mask.shape[-2:] == (batch, n_keys) and mask.ndim == 2:
        mask = mask[:, None, None, :]  # a padding mask
    full = mask.expand(batch, n_heads, n_queries, n_keys)
    return ~full.reshape(batch * n_heads, n_queries, n_keys"""
        },
        "a mask with two axes is read as (batch, key)",
    ),
    (
        "remembered by the shape of the mask",
        {
            "torch-mask": """KNOWN = {}


def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    about = (tuple(mask.shape), batch, n_heads, n_queries, n_keys)
    if about not in KNOWN:
        full = mask.expand(batch, n_heads, n_queries, n_keys)
        KNOWN[about] = ~full.reshape(batch * n_heads, n_queries, n_keys)
    return KNOWN[about]"""
        },
        "this is for the previous mask of that shape",
    ),
    (
        "padding hidden as a query",
        {
            "torch-mask": """def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    full = mask.expand(batch, n_heads, n_queries, n_keys)
    if n_queries == n_keys:
        full = full & full.transpose(-1, -2)
    return ~full.reshape(batch * n_heads, n_queries, n_keys)"""
        },
        "a token that may not be seen may not see either",
    ),
    (
        "0 · ln 0",
        {
            "keys-in-use": """def keys_in_use(weights, is_token):
    entropy = -(weights * weights.log()).sum(dim=-1)
    return entropy.exp().transpose(0, 1)[:, is_token].mean(dim=-1)"""
        },
        "0 · ln 0 is NaN in torch",
    ),
    (
        "the mean before the power",
        {
            "keys-in-use": """def keys_in_use(weights, is_token):
    entropy = torch.special.entr(weights).sum(dim=-1)
    return entropy.transpose(0, 1)[:, is_token].mean(dim=-1).exp()"""
        },
        "The entropy is averaged first",
    ),
    (
        "padding counted",
        {
            "keys-in-use": """def keys_in_use(weights, is_token):
    return torch.special.entr(weights).sum(dim=-1).exp().mean(dim=(0, 2))"""
        },
        "The padding's queries are in the mean.",
    ),
    (
        "two bases",
        {
            "keys-in-use": """def keys_in_use(weights, is_token):
    entropy = -(weights * weights.clamp_min(1e-30).log2()).sum(dim=-1)
    return entropy.exp().transpose(0, 1)[:, is_token].mean(dim=-1)"""
        },
        "Use the same base for both.",
    ),
    (
        "one over the sum of squares",
        {
            "keys-in-use": """def keys_in_use(weights, is_token):
    used = 1 / weights.square().sum(dim=-1)
    return (used * is_token[:, None, :]).sum(dim=(0, 2)) / is_token.sum()"""
        },
        "This is 1 / Σ w²",
    ),
    (
        "sentence 0 says which queries are tokens",
        {
            "keys-in-use": """def keys_in_use(weights, is_token):
    weights = weights[:, :, is_token[0]]
    used = torch.special.entr(weights).sum(dim=-1).exp()
    return used.mean(dim=(0, 2))"""
        },
        "Sentence 0 says for all sentences",
    ),
]

RIGHT = [
    (
        "state dicts",
        {
            "copy-weights": """def copy_weights(theirs, mine):
    there = theirs.state_dict()
    d_model = there["out_proj.weight"].shape[0]
    weights = [*there["in_proj_weight"].split(d_model), there["out_proj.weight"]]
    if "in_proj_bias" in there:
        biases = [*there["in_proj_bias"].split(d_model), there["out_proj.bias"]]
    else:
        biases = [torch.zeros(d_model)] * 4
    here = {}
    for name, weight, bias in zip(("w_q", "w_k", "w_v", "w_o"), weights, biases):
        here[f"{name}.weight"], here[f"{name}.bias"] = weight, bias
    mine.load_state_dict(here)"""
        },
    ),
    (
        "a loop over sentences and heads",
        {
            "torch-mask": """def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    while mask.ndim < 4:
        mask = mask[None]
    maps = torch.zeros(batch * n_heads, n_queries, n_keys, dtype=torch.bool)
    for b in range(batch):
        for h in range(n_heads):
            own = mask[b % mask.shape[0], h % mask.shape[1]]
            maps[b * n_heads + h] = torch.logical_not(own)
    return maps"""
        },
    ),
]
