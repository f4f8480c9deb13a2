"""Answers to 6-capstone: mistakes that students make, and right ones written in another way."""

from tests.assignments.submissions import Mistake, Right

LAYERS = """class MyAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_key = n_heads, d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, self.d_key)).transpose(1, 2)

"""

MISTAKES = [
    Mistake(
        "the scores are not scaled",
        cell="my-attention",
        code=LAYERS
        + """    def forward(self, query, key, value, mask=None):
        q, k = self.split(self.w_q(query)), self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        scores = q @ k.mT
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights
""",
        says="The scores are not scaled.",
    ),
    Mistake(
        "torch's polarity in the book's module",
        cell="my-attention",
        code=LAYERS
        + """    def forward(self, query, key, value, mask=None):
        q, k = self.split(self.w_q(query)), self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        scores = q @ k.mT / self.d_key**0.5
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights
""",
        says="The mask is the wrong way round",
    ),
    Mistake(
        "a softmax that overflows",
        cell="my-attention",
        code="""class MyAttention(nn.Module):
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
        return self.w_o(merged), weights
""",
        says="With scores of several hundred there is NaN",
    ),
    Mistake(
        "stacked in another order",
        cell="copy-weights",
        code="""def copy_weights(theirs, mine):
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
            mine.w_o.bias.copy_(theirs.out_proj.bias)
""",
        says="w_q.weight holds what belongs into w_k.weight.",
    ),
    Mistake(
        "transposed",
        cell="copy-weights",
        code="""def copy_weights(theirs, mine):
    layers = (mine.w_q, mine.w_k, mine.w_v)
    with torch.no_grad():
        for layer, weight in zip(layers, theirs.in_proj_weight.chunk(3)):
            layer.weight.copy_(weight.T)
            layer.bias.zero_()
        mine.w_o.weight.copy_(theirs.out_proj.weight.T)
        mine.w_o.bias.zero_()
        if theirs.in_proj_bias is not None:
            for layer, bias in zip(layers, theirs.in_proj_bias.chunk(3)):
                layer.bias.copy_(bias)
            mine.w_o.bias.copy_(theirs.out_proj.bias)
""",
        says="w_q.weight is transposed",
    ),
    Mistake(
        "biases forgotten",
        cell="copy-weights",
        code="""def copy_weights(theirs, mine):
    with torch.no_grad():
        for layer, weight in zip((mine.w_q, mine.w_k, mine.w_v), theirs.in_proj_weight.chunk(3)):
            layer.weight.copy_(weight)
        mine.w_o.weight.copy_(theirs.out_proj.weight)
""",
        says="w_q.bias holds no bias of theirs.",
    ),
    Mistake(
        "a missing bias left as it was",
        cell="copy-weights",
        code="""def copy_weights(theirs, mine):
    layers = (mine.w_q, mine.w_k, mine.w_v)
    with torch.no_grad():
        for layer, weight in zip(layers, theirs.in_proj_weight.chunk(3)):
            layer.weight.copy_(weight)
        mine.w_o.weight.copy_(theirs.out_proj.weight)
        if theirs.in_proj_bias is not None:
            for layer, bias in zip(layers, theirs.in_proj_bias.chunk(3)):
                layer.bias.copy_(bias)
            mine.w_o.bias.copy_(theirs.out_proj.bias)
""",
        says="w_q.bias is not 0",
    ),
    Mistake(
        "the same memory",
        cell="copy-weights",
        code="""def copy_weights(theirs, mine):
    layers = (mine.w_q, mine.w_k, mine.w_v)
    for layer, weight in zip(layers, theirs.in_proj_weight.data.chunk(3)):
        layer.weight.data = weight
    mine.w_o.weight.data = theirs.out_proj.weight.data
    for layer in (*layers, mine.w_o):
        layer.bias.data.zero_()
    if theirs.in_proj_bias is not None:
        for layer, bias in zip(layers, theirs.in_proj_bias.data.chunk(3)):
            layer.bias.data = bias
        mine.w_o.bias.data = theirs.out_proj.bias.data
""",
        says="shares its memory with theirs",
    ),
    Mistake(
        "parameters that ask for no gradient",
        cell="copy-weights",
        code="""def copy_weights(theirs, mine):
    def held(tensor):
        return nn.Parameter(tensor.detach().clone(), requires_grad=False)

    d_model = theirs.embed_dim
    layers = (mine.w_q, mine.w_k, mine.w_v)
    biases = theirs.in_proj_bias if theirs.in_proj_bias is not None else torch.zeros(3 * d_model)
    for layer, weight, bias in zip(layers, theirs.in_proj_weight.chunk(3), biases.chunk(3)):
        layer.weight, layer.bias = held(weight), held(bias)
    mine.w_o.weight = held(theirs.out_proj.weight)
    bias = theirs.out_proj.bias
    mine.w_o.bias = held(bias if bias is not None else torch.zeros(d_model))
""",
        says="asks for no gradient",
    ),
    Mistake(
        "a method in the place of weights",
        cell="copy-weights",
        code="""def copy_weights(theirs, mine):
    def forward(query, key=None, value=None, mask=None, **_):
        key = query if key is None else key
        value = key if value is None else value
        if mask is not None:
            full = (query.shape[0], theirs.num_heads, query.shape[1], key.shape[1])
            mask = ~mask.expand(full).flatten(0, 1)
        return theirs(query, key, value, attn_mask=mask, average_attn_weights=False)

    mine.forward = forward
""",
        says="its parameters do not hold the weights",
    ),
    Mistake(
        "True still means may attend",
        cell="torch-mask",
        code="""def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    return mask.expand(batch, n_heads, n_queries, n_keys).flatten(0, 1)
""",
        says="Its True means may not attend.",
    ),
    Mistake(
        "head after head",
        cell="torch-mask",
        code="""def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    mask = mask.expand(batch, n_heads, n_queries, n_keys)
    return ~mask.transpose(0, 1).flatten(0, 1)
""",
        says="the maps are in the wrong order",
    ),
    Mistake(
        "turned only",
        cell="torch-mask",
        code="""def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    return ~mask
""",
        says="(batch · n_heads, query, key) is due",
    ),
    Mistake(
        "the mask of head 0 for all heads",
        cell="torch-mask",
        code="""def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    mask = mask.expand(batch, n_heads, n_queries, n_keys)
    return ~mask[:, 0].repeat_interleave(n_heads, dim=0)
""",
        says="Each head keeps its own mask.",
    ),
    Mistake(
        "two axes taken for padding",
        cell="torch-mask",
        code="""def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    if mask.shape[-2:] == (batch, n_keys) and mask.ndim == 2:
        mask = mask[:, None, None, :]  # a padding mask
    full = mask.expand(batch, n_heads, n_queries, n_keys)
    return ~full.reshape(batch * n_heads, n_queries, n_keys)
""",
        says="a mask with two axes is read as (batch, key)",
    ),
    Mistake(
        "remembered by the shape of the mask",
        cell="torch-mask",
        code="""KNOWN = {}


def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    about = (tuple(mask.shape), batch, n_heads, n_queries, n_keys)
    if about not in KNOWN:
        full = mask.expand(batch, n_heads, n_queries, n_keys)
        KNOWN[about] = ~full.reshape(batch * n_heads, n_queries, n_keys)
    return KNOWN[about]
""",
        says="this is for the mask before, of the same shape",
    ),
    Mistake(
        "padding hidden as a query",
        cell="torch-mask",
        code="""def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    full = mask.expand(batch, n_heads, n_queries, n_keys)
    if n_queries == n_keys:
        full = full & full.transpose(-1, -2)
    return ~full.reshape(batch * n_heads, n_queries, n_keys)
""",
        says="a token that may not be seen may not see either",
    ),
    Mistake(
        "0 · ln 0",
        cell="keys-in-use",
        code="""def keys_in_use(weights, is_token):
    entropy = -(weights * weights.log()).sum(dim=-1)
    return entropy.exp().transpose(0, 1)[:, is_token].mean(dim=-1)
""",
        says="0 · ln 0 is NaN in torch",
    ),
    Mistake(
        "the mean before the power",
        cell="keys-in-use",
        code="""def keys_in_use(weights, is_token):
    entropy = torch.special.entr(weights).sum(dim=-1)
    return entropy.transpose(0, 1)[:, is_token].mean(dim=-1).exp()
""",
        says="The entropy is averaged first",
    ),
    Mistake(
        "padding counted",
        cell="keys-in-use",
        code="""def keys_in_use(weights, is_token):
    return torch.special.entr(weights).sum(dim=-1).exp().mean(dim=(0, 2))
""",
        says="The padding's queries are in the mean.",
    ),
    Mistake(
        "two bases",
        cell="keys-in-use",
        code="""def keys_in_use(weights, is_token):
    entropy = -(weights * weights.clamp_min(1e-30).log2()).sum(dim=-1)
    return entropy.exp().transpose(0, 1)[:, is_token].mean(dim=-1)
""",
        says="Take both to one base.",
    ),
    Mistake(
        "one over the sum of squares",
        cell="keys-in-use",
        code="""def keys_in_use(weights, is_token):
    used = 1 / weights.square().sum(dim=-1)
    return (used * is_token[:, None, :]).sum(dim=(0, 2)) / is_token.sum()
""",
        says="This is 1 / Σ w²",
    ),
    Mistake(
        "sentence 0 says which queries are tokens",
        cell="keys-in-use",
        code="""def keys_in_use(weights, is_token):
    weights = weights[:, :, is_token[0]]
    used = torch.special.entr(weights).sum(dim=-1).exp()
    return used.mean(dim=(0, 2))
""",
        says="Sentence 0 says for all sentences",
    ),
]

RIGHT = [
    Right(
        "from the book's functions",
        cell="my-attention",
        code="""from attention import merge_heads, scaled_dot_product_attention, split_heads


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
        return self.w_o(merge_heads(heads)), weights
""",
    ),
    Right(
        "state dicts",
        cell="copy-weights",
        code="""def copy_weights(theirs, mine):
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
    mine.load_state_dict(here)
""",
    ),
    Right(
        "a loop over sentences and heads",
        cell="torch-mask",
        code="""def torch_mask(mask, batch, n_heads, n_queries, n_keys):
    while mask.ndim < 4:
        mask = mask[None]
    maps = torch.zeros(batch * n_heads, n_queries, n_keys, dtype=torch.bool)
    for b in range(batch):
        for h in range(n_heads):
            own = mask[b % mask.shape[0], h % mask.shape[1]]
            maps[b * n_heads + h] = torch.logical_not(own)
    return maps
""",
    ),
    Right(
        "a loop over queries, base 2",
        cell="keys-in-use",
        code="""def keys_in_use(weights, is_token):
    batch, heads, queries, _ = weights.shape
    total = torch.zeros(heads)
    for b in range(batch):
        for q in range(queries):
            if is_token[b, q]:
                for h in range(heads):
                    row = weights[b, h, q][weights[b, h, q] > 0]
                    total[h] += 2 ** -(row * row.log2()).sum()
    return total / is_token.sum()
""",
    ),
]
