"""Answers to 9-cost-and-cache: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "count": """def count(new, kept, d_model, n_heads, n_kv_heads, d_ff):
    d_kv = n_kv_heads * (d_model // n_heads)
    seq = kept + new
    met = sum(kept + i + 1 for i in range(new))
    return torch.tensor(
        [2 * new * d_model * d_model + 2 * new * d_model * d_kv, met * d_model * 2, new * d_model * d_ff * 3, 2 * seq * d_kv]
    )


def largest(new, kept, d_model, n_heads, n_kv_heads, d_ff):
    work = count(new, kept, d_model, n_heads, n_kv_heads, d_ff)
    names = ["projections", "pairs", "feed-forward", "cache"]
    return names[int(work[:3].argmax())]


def outweighs(d_model, n_heads, n_kv_heads, d_ff):
    d_kv = n_kv_heads * (d_model // n_heads)
    return d_model + d_kv + 3 * d_ff // 2""",
    "to-latent": """def to_latent(w_k, w_v, n_heads, n_kv_heads):
    both = torch.cat([w_k, w_v])
    u, s, vh = torch.linalg.svd(both, full_matrices=False)
    d_latent = int((s / s[0] > 1e-4).sum())
    down = s[:d_latent, None] * vh[:d_latent]
    up_k, up_v = u[:, :d_latent].chunk(2)
    group, d_key = n_heads // n_kv_heads, len(w_k) // n_kv_heads

    def every(up):
        return torch.cat([x for x in up.split(d_key) for _ in range(group)])

    return down, every(up_k), every(up_v)""",
    "step": """def step(layer, new, cache=None):
    batch, n_new, _ = new.shape
    heads, kv_heads, d_key = layer.n_heads, layer.n_kv_heads, layer.d_key
    q = layer.w_q(new).view(batch, n_new, heads, d_key).transpose(1, 2)
    k = layer.w_k(new).view(batch, n_new, kv_heads, d_key).transpose(1, 2)
    v = layer.w_v(new).view(batch, n_new, kv_heads, d_key).transpose(1, 2)
    earlier = 0 if cache is None else cache["k"].shape[2]
    at = earlier + torch.arange(n_new)
    q = turn(q, at)
    k = turn(k, at)
    v = v
    if cache is not None:
        k, v = torch.cat([cache["k"], k], dim=2), torch.cat([cache["v"], v], dim=2)
    kept = {"k": k, "v": v}
    seq = k.shape[2]
    all_k, all_v = (x.repeat_interleave(heads // kv_heads, dim=1) for x in (k, v))
    scores = q @ all_k.mT / d_key**0.5
    scores = scores.masked_fill(~(torch.ones(n_new, seq, dtype=torch.bool).tril(seq - n_new)), -torch.inf)
    attended = scores.softmax(dim=-1) @ all_v
    return layer.w_o(attended.transpose(1, 2).reshape(batch, n_new, -1)), kept""",
    "tile-gradients": """def tile_gradients(query, key, value, output, log_sum, grad_output, grad_log_sum):
    root = query.shape[-1] ** 0.5
    scores = torch.einsum("qd,kd->qk", query, key) / root
    weights = torch.exp(scores - log_sum.unsqueeze(1))
    pulled = torch.einsum("qv,kv->qk", grad_output, value)
    mean = torch.einsum('qv,qv->q', grad_output, output).unsqueeze(1)
    scores_back = weights * (pulled - mean) + weights * grad_log_sum.unsqueeze(1)
    return (
        torch.einsum("qk,kd->qd", scores_back, key) / root,
        torch.einsum("qk,qd->kd", scores_back, query) / root,
        torch.einsum("qk,qv->kv", weights, grad_output),
    )""",
    "find-fault": """def find_fault(read, whole, vocab):
    torch.manual_seed(3)
    ids = torch.randint(0, vocab, (3, 12))

    def close(a, b):
        return (a - b).abs().max() < 5e-4

    def tokens(text):
        return [text[:, i : i + 1] for i in range(text.shape[1])]

    alone = ids[:1]
    right = whole(alone)
    first = read(tokens(alone))
    for i in range(right.shape[1]):
        if not close(first[:, i], right[:, i]):
            return "places" if i < 3 else "oldest"
    if not close(read(tokens(alone)), right):
        return "last text"
    piece = read([alone[:, :3], alone[:, 3:4], alone[:, 4:]])
    if not close(piece[:, :3], right[:, :3]):
        return "future"
    if not close(piece, right):
        return "alignment"
    if not close(read(tokens(ids)), whole(ids)):
        return "sentence"
    return "none\"""",
}

MISTAKES = [
    (
        "the future is computed",
        {"sum(kept + i + 1 for i in range(new))": "new * seq"},
        "The mask hides them, and what it hides is not computed.",
    ),
    (
        "every head its own keys",
        {"2 * new * d_model * d_model + 2 * new * d_model * d_kv": "4 * new * d_model**2"},
        "Keys and values are counted as if every head had its own.",
    ),
    (
        "no w_o",
        {
            "2 * new * d_model * d_model + 2 * new * d_model * d_kv": "new * d_model * (d_model + 2 * d_kv)"
        },
        "W_O is missing",
    ),
    (
        "the cache is projected again",
        {"new * d_model * d_model + 2 * new * d_model * d_kv": "seq * d_model * (d_model + d_kv)"},
        "The tokens in the cache are projected once more.",
    ),
    (
        "sharing saves pairs",
        {"met * d_model * 2": "2 * met * d_kv"},
        "sharing saves cache, but no pairs.",
    ),
    ("scores alone", {"* 2,": ","}, "one of the two is missing."),
    (
        "the heads twice",
        {"met * d_model * 2": "2 * met * d_model * n_heads"},
        "The heads are counted twice",
    ),
    ("not itself", {"+ i + 1": "+ i"}, "its own key is among those it meets"),
    (
        "no gate",
        {"new * d_model * d_ff * 3": "2 * new * d_model * d_ff"},
        "This layer is gated and has three.",
    ),
    (
        "a cache for every head of queries",
        {"d_kv]": "d_model]"},
        "Heads that share them keep them once",
    ),
    ("the cache before", {"seq *": "kept *"}, "This is what was in the cache before."),
    (
        "two for each multiply-add",
        {
            "2 * new * d_model * d_model + 2 * new * d_model * d_kv, met * d_model * 2, new * d_model * d_ff * 3": "4 * new * d_model * (d_model + d_kv), 4 * met * d_model, 6 * new * d_model * d_ff"
        },
        "These are floating-point operations",
    ),
    (
        "floats",
        {"met * d_model * 2": "2 * met * (d_model / n_heads) * n_heads"},
        "Divide whole numbers with `//`.",
    ),
    (
        "attention is always the largest",
        {"names[int(work[:3].argmax())]": '"pairs"'},
        "The multiply-adds are:",
    ),
    ("one token too many", {"// 2": "// 2 + 1"}, "The new token's own key counts as well"),
    (
        "more than the projections alone",
        {"d_kv + 3 * d_ff // 2": "d_kv"},
        "The feed-forward layer is part of the rest.",
    ),
    (
        "counted in float32",
        {
            """]
    )""": """], dtype=torch.float32
    ).long()"""
        },
        "The last digits are lost",
    ),
    (
        "one new token alone",
        {"work[": "count(1, kept, d_model, n_heads, n_kv_heads, d_ff)["},
        "you say 'projections'",
    ),
    (
        "a search that ends",
        {"d_model + d_kv + 3 * d_ff // 2": "min(d_model + d_kv + 3 * d_ff // 2, 1000)"},
        "Your search ends there.",
    ),
    (
        "stacked, and no narrower",
        {
            "int((s / s[0] > 1e-4).sum()": "len(both",
            "s[:d_latent, None] * vh[:d_latent]": "both",
            "u[:, :d_latent]": "torch.eye(d_latent)",
        },
        "find the rows that others can make",
    ),
    (
        "a row for every head",
        {
            "to-latent": """def to_latent(w_k, w_v, n_heads, n_kv_heads):
    group = n_heads // n_kv_heads
    keys, values = (
        w.unflatten(0, (n_kv_heads, -1)).repeat_interleave(group, dim=0).flatten(0, 1)
        for w in (w_k, w_v)
    )
    down = torch.cat([keys, values])
    up_k, up_v = torch.eye(len(down)).chunk(2)
    return down, up_k, up_v"""
        },
        "The cache is larger than before",
    ),
    (
        "keys and values apart",
        {
            "to-latent": """def to_latent(w_k, w_v, n_heads, n_kv_heads):
    group = n_heads // n_kv_heads
    downs, ups = [], []
    for w in (w_k, w_v):
        u, s, vh = torch.linalg.svd(w, full_matrices=False)
        rank = int((s > 1e-4 * s[0]).sum())
        downs.append(vh[:rank])
        up = (u * s)[:, :rank].unflatten(0, (n_kv_heads, -1))
        ups.append(up.repeat_interleave(group, dim=0).flatten(0, 1))
    width = [len(down) for down in downs]
    up_k = torch.nn.functional.pad(ups[0], (0, width[1]))
    up_v = torch.nn.functional.pad(ups[1], (width[0], 0))
    return torch.cat(downs), up_k, up_v"""
        },
        "Keys and values are treated separately",
    ),
    (
        "repeated in turn",
        {"torch.cat([x for x in up.split(d_key) for _ in range(group)]": "up.repeat(group, 1"},
        "The heads are repeated in turn",
    ),
    (
        "row by row",
        {
            "torch.cat([x for x in up.split(d_key) for _ in range(group)]": "up.repeat_interleave(group, dim=0"
        },
        "the rows of different heads are mixed",
    ),
    (
        "the shared heads alone",
        {"torch.cat([x for x in up.split(d_key) for _ in range(group)])": "up"},
        "repeat them here, where it costs no cache",
    ),
    ("no singular values", {"= s[:d_latent, None] *": "="}, "the singular values are missing"),
    ("too narrow", {"/ s[0] > 1e-4": "> 0.3 * s[0]"}, "is too narrow"),
    (
        "the ups swapped",
        {"up_k), every(up_v": "up_v), every(up_k"},
        "up_k and up_v have changed places.",
    ),
    ("down transposed", {"down,": "down.T,"}, "It is transposed"),
    (
        "rounding counts",
        {"(s / s[0] > 1e-4).sum(": "torch.linalg.matrix_rank(both"},
        "the keys and values are right, but a row has",
    ),
    (
        "the squares of the singular values",
        {"/ s[0] > 1e-4": "**2 > 1e-4 * s[0] ** 2"},
        "is too narrow",
    ),
    (
        "a limit whatever the largest is",
        {"/ s[0] >": ">"},
        "a singular value below 1/10000 of the largest one is 0",
    ),
    ("counted from 0 again", {"= earlier +": "="}, "The new tokens are counted from 0 again."),
    ("one place too far", {"+ torch": "+ (earlier > 0) + torch"}, "one position too far"),
    (
        "a piece has one place",
        {"earlier + torch.arange(n_new": "torch.full((n_new,), earlier"},
        "All tokens of a piece are turned alike.",
    ),
    ("queries not turned", {"turn(q, at)": "q"}, "The keys are turned, but the queries are not."),
    ("values turned", {"= v": "= turn(v, at)"}, "The values are turned as well."),
    (
        "turned at every step",
        {
            "turn(k, at)": "k",
            """k, "v": v}
    seq = k.shape[2""": """turn(k, torch.arange(k.shape[2])), "v": v}
    seq = k.shape[2]
    k = kept['k'""",
        },
        "The keys from the cache are turned once more at every step.",
    ),
    (
        "the mask at the first key",
        {"seq - n_new)": ")"},
        "The causal mask is aligned with the first key",
    ),
    ("no mask", {".tril(seq - n_new))": ")"}, "New tokens see later ones of the same piece."),
    (
        "heads shared in turn",
        {"repeat_interleave(heads // kv_heads, dim=": "repeat(1, heads // kv_heads, 1,"},
        "The KV heads are repeated in turn",
    ),
    (
        "a cache of repeated heads",
        {"v}": 'v, "all": [x.repeat_interleave(heads // kv_heads, 1) for x in (k, v)]}'},
        "It holds keys and values for every query head.",
    ),
    (
        "the text as a cache",
        {
            "step": """def step(layer, new, cache=None):
    text = new if cache is None else torch.cat([cache, new], dim=1)
    at = torch.arange(text.shape[1])
    q = turn(apart(layer.w_q(text), layer.n_heads), at)
    k = turn(apart(layer.w_k(text), layer.n_kv_heads), at)
    v = apart(layer.w_v(text), layer.n_kv_heads)
    heads, _ = grouped_attention(q, k, v, causal=True)
    return layer.w_o(heads.transpose(1, 2).flatten(2))[:, -new.shape[1] :], text"""
        },
        "project only new tokens",
    ),
    (
        "a list that grows",
        {
            '"k"].': "-1][0].",
            '"k"],': "-1][0],",
            '"v"]': "-1][1]",
            '{"k": k, "v": v}': """cache or []
    kept[:] = [(k, v)]""",
        },
        "A second continuation from the same cache",
    ),
    ("no divisor", {"d_key**0.5": "1"}, "The scores are not divided by √d_key."),
    (
        "the cache in a global name",
        {
            "def": """KEPT = {}


def""",
            "else cache": "else KEPT",
            '[cache["k"': '[KEPT["k"',
            'cache["v"': 'KEPT["v"',
            '{"k": k, "v": v}': """True
    KEPT["k"], KEPT["v"] = k, v""",
        },
        "something is kept outside of the cache",
    ),
    (
        "a softmax of the tile",
        {"torch.exp(scores - log_sum.unsqueeze(1)": "scores.softmax(dim=-1"},
        "The weights are a softmax over this tile.",
    ),
    (
        "the mean of the tile",
        {
            "torch.einsum('qv,qv->q', grad_output, output).unsqueeze(1": "(weights * pulled).sum(dim=-1, keepdim=True"
        },
        "The mean that is subtracted is over this tile's keys.",
    ),
    (
        "no mean",
        {"torch.einsum('qv,qv->q', grad_output, output).unsqueeze(1)": "0"},
        "takes weight from all other keys",
    ),
    (
        "the second term forgotten",
        {") + weights * grad_log_sum.unsqueeze(1)": ")"},
        "grad_log_sum is not used.",
    ),
    (
        "the second term without the weight",
        {"+ weights *": "+"},
        "grad_log_sum is added without the weight.",
    ),
    (
        "the second term subtracted",
        {") + weights * grad_log_sum.unsqueeze(1": "- grad_log_sum.unsqueeze(1)"},
        "The second term has the wrong sign",
    ),
    (
        "the scale once",
        {"key) / root,": "key) / 1,", "query) / root": "query) / 1"},
        "but not in the gradients",
    ),
    ("no scale", {"query.shape[-1] ** 0.5": "1.0"}, "1/√d_key is missing"),
    (
        "divided by the logarithm",
        {"torch.exp(scores - log_sum.unsqueeze(1)": "scores.exp() / log_sum.unsqueeze(1"},
        "The weights are exp(score) / log_sum.",
    ),
    (
        "the values' gradient from the scores'",
        {"weights,": "scores_back,"},
        "The gradient of the values is made from the gradients of the scores.",
    ),
    (
        "through a softmax of the tile",
        {
            "tile-gradients": """def tile_gradients(query, key, value, output, log_sum, grad_output, grad_log_sum):
    inputs = [x.clone().requires_grad_() for x in (query, key, value)]
    q, k, v = inputs
    scores = q @ k.T / q.shape[-1] ** 0.5
    out = scores.softmax(dim=-1) @ v
    loss = (out * grad_output).sum() + (scores.logsumexp(dim=-1) * grad_log_sum).sum()
    return torch.autograd.grad(loss, inputs)"""
        },
        "These are the gradients of attention to this tile alone",
    ),
    (
        "the sum before the quotient",
        {"- log_sum.unsqueeze(1)": ") / torch.exp(log_sum).unsqueeze(1"},
        "`exp` overflows.",
    ),
    ("scaled by d_value", {"query.": "value."}, "The scores are divided by √d_value."),
    (
        "token by token alone",
        {"[alone[:, :3], alone[:, 3:4], alone[:, 4:]]": "tokens(alone)"},
        "Token by token this reader is right",
    ),
    (
        "one sentence alone",
        {"ids)), whole(ids)": "alone)), right"},
        "One sentence alone is read correctly",
    ),
    (
        "the same sentence twice",
        {"3, 12)": "1, 12)).expand(3, 12"},
        "Read two different sentences side by side",
    ),
    (
        "called once",
        {
            """if not close(read(tokens(alone)), right):
        return "last text"
    piece""": """pass
    piece"""
        },
        "Call the reader twice",
    ),
    ("too short a text", {"12": "6"}, "A short text is read correctly."),
    (
        "no tolerance",
        {"(a - b).abs().max() < 5e-4": "torch.equal(a, b)"},
        "compare with a tolerance",
    ),
    (
        "one piece of several tokens",
        {"[:, :3], alone[:, 3:4], alone[:, 4:]]": "]"},
        "Give it a second piece of several tokens.",
    ),
    (
        "whatever goes wrong in the first call",
        {'return "places" if i < 3 else': "return"},
        "the second token is wrong already",
    ),
    (
        "looks inside of the reader",
        {
            "find-fault": """def find_fault(read, whole, vocab):
    names = ("places", "future", "alignment", "oldest", "sentence", "last text")
    held = [cell.cell_contents for cell in getattr(read, "__closure__", None) or ()]
    held += list(getattr(read, "__dict__", {}).values())
    held += list(getattr(read, "__defaults__", None) or ())
    held += list((getattr(read, "keywords", None) or {}).values())
    held += list(getattr(read, "args", ()))
    held += list(getattr(getattr(read, "__self__", None), "__dict__", {}).values())
    found = [name for name in held if isinstance(name, str) and name in names]
    return found[0] if found else "none\""""
        },
        'You say "none" of a reader',
    ),
]

RIGHT = [
    (
        "by the book's count of a layer, and by search",
        {
            "count": """from attention.cost.dense import grouped_query


def count(new, kept, d_model, n_heads, n_kv_heads, d_ff):
    cost = grouped_query(kept + new, d_model, n_heads, n_kv_heads)
    one = cost.projections // (kept + new)
    pairs = torch.ones(new, kept + new).tril(kept).sum().long()
    return torch.stack([
        torch.tensor(new * one),
        2 * d_model * pairs,
        torch.tensor(new * 3 * d_model * d_ff),
        torch.tensor(cost.cache),
    ])


def largest(*sizes, **named):
    projections, pairs, feed_forward, _ = count(*sizes, **named).tolist()
    work = {"projections": projections, "pairs": pairs, "feed-forward": feed_forward}
    return max(work, key=work.get)


def outweighs(d_model, n_heads, n_kv_heads, d_ff):
    low, high = 0, 10 * (d_model + d_ff)
    while low < high:
        middle = (low + high) // 2
        work = count(1, middle, d_model, n_heads, n_kv_heads, d_ff)
        low, high = (low, middle) if work[1] > work[0] + work[2] else (middle + 1, high)
    return low"""
        },
    ),
    (
        "rows of the weights that the others cannot make",
        {
            "to-latent": """def to_latent(w_k, w_v, n_heads, n_kv_heads):
    rows = torch.cat([w_k, w_v]).double()
    kept = []
    for number in range(len(rows)):
        some = rows[[*kept, number]]
        s = torch.linalg.svdvals(some)
        if s[-1] > 1e-4 * torch.linalg.svdvals(rows)[0]:
            kept.append(number)
    down = rows[kept]
    up = torch.linalg.lstsq(down.T, rows.T).solution.T
    d_key = len(w_k) // n_kv_heads
    head = torch.arange(n_heads) // (n_heads // n_kv_heads)
    chosen = (head[:, None] * d_key + torch.arange(d_key)).flatten()
    up_k, up_v = up[: len(w_k)], up[len(w_k) :]
    return down.float(), up_k[chosen].float(), up_v[chosen].float()"""
        },
    ),
    (
        "keys kept unturned, with the book's rotary positions",
        {
            "step": """def step(layer, new, cache=None):
    k, v = (apart(w(new), layer.n_kv_heads) for w in (layer.w_k, layer.w_v))
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    q, turned = Rotary(layer.d_key)(apart(layer.w_q(new), layer.n_heads), k)
    heads, _ = grouped_attention(q, turned, v, causal=True)
    return layer.w_o(heads.transpose(1, 2).flatten(2)), (k, v)"""
        },
    ),
    (
        "a list of tokens, one query at a time",
        {
            "step": """class Token:
    def __init__(self, key, value):
        self.key, self.value = key, value


def step(layer, new, cache=None):
    tokens, outputs = list(cache or ()), []
    for x in new.split(1, dim=1):
        place = torch.tensor([len(tokens)])
        q = turn(apart(layer.w_q(x), layer.n_heads), place)
        k = turn(apart(layer.w_k(x), layer.n_kv_heads), place)
        tokens.append(Token(k, apart(layer.w_v(x), layer.n_kv_heads)))
        keys = torch.cat([token.key for token in tokens], dim=2)
        values = torch.cat([token.value for token in tokens], dim=2)
        q = q.unflatten(1, (layer.n_kv_heads, -1))  # (batch, kv_heads, group, 1, d_key)
        weights = (q @ keys[:, :, None].mT / layer.d_key**0.5).softmax(dim=-1)
        heads = (weights @ values[:, :, None]).flatten(1, 2)
        outputs.append(layer.w_o(heads.transpose(1, 2).flatten(2)))
    return torch.cat(outputs, dim=1), tokens"""
        },
    ),
    (
        "by torch, with all other keys as one",
        {
            "tile-gradients": """def tile_gradients(query, key, value, output, log_sum, grad_output, grad_log_sum):
    with torch.no_grad():
        scores = query @ key.T / query.shape[-1] ** 0.5
        seen = (scores - log_sum[:, None]).exp()
        rest = output - seen @ value  # what the other keys add
        left = 1 - seen.sum(dim=-1)  # and what they weigh
    inputs = [x.clone().requires_grad_() for x in (query, key, value)]
    q, k, v = inputs
    raised = (q @ k.T / q.shape[-1] ** 0.5 - log_sum[:, None]).exp()
    total = raised.sum(dim=-1) + left  # 1, and its gradient is what matters
    out = (raised @ v + rest) / total[:, None]
    loss = (out * grad_output).sum() + (total.log() * grad_log_sum).sum()
    return torch.autograd.grad(loss, inputs)"""
        },
    ),
    (
        "by a loop over the queries",
        {
            "tile-gradients": """def tile_gradients(query, key, value, output, log_sum, grad_output, grad_log_sum):
    found = [torch.zeros_like(x) for x in (query, key, value)]
    root = query.shape[1] ** 0.5
    for i in range(len(query)):
        for j in range(len(key)):
            weight = (query[i] @ key[j] / root - log_sum[i]).exp()
            pull = weight * (grad_output[i] @ (value[j] - output[i]) + grad_log_sum[i])
            found[0][i] += pull * key[j] / root
            found[1][j] += pull * query[i] / root
            found[2][j] += weight * grad_output[i]
    return tuple(found)"""
        },
    ),
    (
        "an experiment for each fault",
        {
            "find-fault": """def find_fault(read, whole, vocab):
    torch.manual_seed(11)

    def wrong(batch, sizes, calls=1):
        for _ in range(calls):
            ids = torch.randint(vocab, (batch, sum(sizes)))
            gap = (read(list(ids.split(sizes, dim=1))) - whole(ids)).abs()
        return bool((gap > 3e-4).any())

    # a call with another number of sentences in between clears what the last one has left
    short = wrong(1, [1, 1])
    wrong(2, [1])
    if short:
        return "places"
    if wrong(1, [1, 1], calls=2):
        return "last text"
    if wrong(1, [4]):
        return "future"
    if wrong(1, [3, 3]):
        return "alignment"
    if wrong(1, [1] * 15):
        return "oldest"
    return "sentence" if wrong(4, [2, 1, 1]) else "none\""""
        },
    ),
]
