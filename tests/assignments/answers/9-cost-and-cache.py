"""Answers to 9-cost-and-cache: mistakes that students make, and right ones written otherwise."""

from tests.assignments.submissions import Mistake, Right

COUNT = """def count(new, kept, d_model, n_heads, n_kv_heads, d_ff):
    d_kv = n_kv_heads * (d_model // n_heads)
    seq = kept + new
    met = {met}
    return torch.tensor(
        [{projections}, {pairs}, {feed_forward}, {cache}]
    )


def largest(new, kept, d_model, n_heads, n_kv_heads, d_ff):
    work = count(new, kept, d_model, n_heads, n_kv_heads, d_ff)
    names = ["projections", "pairs", "feed-forward", "cache"]
    return {largest}


def outweighs(d_model, n_heads, n_kv_heads, d_ff):
    d_kv = n_kv_heads * (d_model // n_heads)
    return {outweighs}
"""


def count(**changed):
    """A right answer with one thing changed."""
    parts = {
        "met": "sum(kept + i + 1 for i in range(new))",
        "projections": "2 * new * d_model * d_model + 2 * new * d_model * d_kv",
        "pairs": "met * d_model * 2",
        "feed_forward": "new * d_model * d_ff * 3",
        "cache": "2 * seq * d_kv",
        "largest": "names[int(work[:3].argmax())]",
        "outweighs": "d_model + d_kv + 3 * d_ff // 2",
    }
    return COUNT.format(**parts | changed)


LATENT = """def to_latent(w_k, w_v, n_heads, n_kv_heads):
    both = torch.cat([w_k, w_v])
    u, s, vh = torch.linalg.svd(both, full_matrices=False)
    d_latent = {d_latent}
    down = {down}
    up_k, up_v = {ups}
    group, d_key = n_heads // n_kv_heads, len(w_k) // n_kv_heads

    def every(up):
        return {every}

    return {back}
"""


def latent(**changed):
    """A right answer with one thing changed."""
    parts = {
        "d_latent": "int((s / s[0] > 1e-4).sum())",
        "down": "s[:d_latent, None] * vh[:d_latent]",
        "ups": "u[:, :d_latent].chunk(2)",
        "every": "torch.cat([x for x in up.split(d_key) for _ in range(group)])",
        "back": "down, every(up_k), every(up_v)",
    }
    return LATENT.format(**parts | changed)


STEP = """def step(layer, new, cache=None):
    batch, n_new, _ = new.shape
    heads, kv_heads, d_key = layer.n_heads, layer.n_kv_heads, layer.d_key
    q = layer.w_q(new).view(batch, n_new, heads, d_key).transpose(1, 2)
    k = layer.w_k(new).view(batch, n_new, kv_heads, d_key).transpose(1, 2)
    v = layer.w_v(new).view(batch, n_new, kv_heads, d_key).transpose(1, 2)
    earlier = 0 if cache is None else cache["k"].shape[2]
    at = {at}
    q = {turn_q}
    k = {turn_k}
    v = {turn_v}
    if cache is not None:
        k, v = torch.cat([cache["k"], k], dim=2), torch.cat([cache["v"], v], dim=2)
    kept = {kept}
    seq = k.shape[2]
    all_k, all_v = {repeated}
    scores = q @ all_k.mT / {divisor}
    scores = scores.masked_fill(~({mask}), -torch.inf)
    attended = scores.softmax(dim=-1) @ all_v
    return {back}, kept
"""


def step(**changed):
    """A right answer with one thing changed."""
    parts = {
        "at": "earlier + torch.arange(n_new)",
        "turn_q": "turn(q, at)",
        "turn_k": "turn(k, at)",
        "turn_v": "v",
        "kept": '{"k": k, "v": v}',
        "repeated": "(x.repeat_interleave(heads // kv_heads, dim=1) for x in (k, v))",
        "divisor": "d_key**0.5",
        "mask": "torch.ones(n_new, seq, dtype=torch.bool).tril(seq - n_new)",
        "back": "layer.w_o(attended.transpose(1, 2).reshape(batch, n_new, -1))",
    }
    return STEP.format(**parts | changed)


TILE = """def tile_gradients(query, key, value, output, log_sum, grad_output, grad_log_sum):
    root = {root}
    scores = torch.einsum("qd,kd->qk", query, key) / root
    weights = {weights}
    pulled = torch.einsum("qv,kv->qk", grad_output, value)
    mean = {mean}
    scores_back = {scores_back}
    return (
        torch.einsum("qk,kd->qd", scores_back, key) / {back},
        torch.einsum("qk,qd->kd", scores_back, query) / {back},
        torch.einsum("qk,qv->kv", {of_values}),
    )
"""


def tile(**changed):
    """A right answer with one thing changed."""
    parts = {
        "root": "query.shape[-1] ** 0.5",
        "weights": "torch.exp(scores - log_sum.unsqueeze(1))",
        "mean": "torch.einsum('qv,qv->q', grad_output, output).unsqueeze(1)",
        "scores_back": "weights * (pulled - mean) + weights * grad_log_sum.unsqueeze(1)",
        "back": "root",
        "of_values": "weights, grad_output",
    }
    return TILE.format(**parts | changed)


FIND = """def find_fault(read, whole, vocab):
    torch.manual_seed(3)
    ids = {ids}

    def close(a, b):
        return {close}

    def tokens(text):
        return [text[:, i : i + 1] for i in range(text.shape[1])]

    alone = ids[:1]
    right = whole(alone)
    first = {first}
    for i in range(right.shape[1]):
        if not close(first[:, i], right[:, i]):
            return "places" if i < 3 else "oldest"
    {again}
    piece = read({pieces})
    if not close(piece[:, :3], right[:, :3]):
        return "future"
    if not close(piece, right):
        return "alignment"
    if not close({company}):
        return "sentence"
    return "none"
"""


def find(**changed):
    """A right answer with one thing changed."""
    parts = {
        "ids": "torch.randint(0, vocab, (3, 12))",
        "close": "(a - b).abs().max() < 5e-4",
        "first": "read(tokens(alone))",
        "again": 'if not close(read(tokens(alone)), right):\n        return "last text"',
        "pieces": "[alone[:, :3], alone[:, 3:4], alone[:, 4:]]",
        "company": "read(tokens(ids)), whole(ids)",
    }
    return FIND.format(**parts | changed)


MISTAKES = [
    Mistake(
        "the future is computed",
        cell="count",
        code=count(met="new * seq"),
        says="The mask hides them, and what it hides is not computed.",
    ),
    Mistake(
        "every head its own keys",
        cell="count",
        code=count(projections="4 * new * d_model**2"),
        says="Keys and values are counted as if every head had its own.",
    ),
    Mistake(
        "no w_o",
        cell="count",
        code=count(projections="new * d_model * (d_model + 2 * d_kv)"),
        says="W_O is missing",
    ),
    Mistake(
        "the cache is projected again",
        cell="count",
        code=count(projections="2 * seq * d_model * (d_model + d_kv)"),
        says="The tokens in the cache are projected once more.",
    ),
    Mistake(
        "sharing saves pairs",
        cell="count",
        code=count(pairs="2 * met * d_kv"),
        says="sharing saves cache, and no pair.",
    ),
    Mistake(
        "scores alone",
        cell="count",
        code=count(pairs="met * d_model"),
        says="one of the two is missing.",
    ),
    Mistake(
        "the heads twice",
        cell="count",
        code=count(pairs="2 * met * d_model * n_heads"),
        says="The heads are counted twice",
    ),
    Mistake(
        "not itself",
        cell="count",
        code=count(met="sum(kept + i for i in range(new))"),
        says="its own key is among those it meets",
    ),
    Mistake(
        "no gate",
        cell="count",
        code=count(feed_forward="2 * new * d_model * d_ff"),
        says="This layer is gated and has three.",
    ),
    Mistake(
        "a cache for every head of queries",
        cell="count",
        code=count(cache="2 * seq * d_model"),
        says="Heads that share them keep them once",
    ),
    Mistake(
        "the cache before",
        cell="count",
        code=count(cache="2 * kept * d_kv"),
        says="This is what lay there before.",
    ),
    Mistake(
        "two for each multiply-add",
        cell="count",
        code=count(
            projections="4 * new * d_model * (d_model + d_kv)",
            pairs="4 * met * d_model",
            feed_forward="6 * new * d_model * d_ff",
        ),
        says="These are floating-point operations",
    ),
    Mistake(
        "floats",
        cell="count",
        code=count(pairs="2 * met * (d_model / n_heads) * n_heads"),
        says="Divide whole numbers with `//`.",
    ),
    Mistake(
        "attention is always the largest",
        cell="count",
        code=count(largest='"pairs"'),
        says="The multiply-adds are:",
    ),
    Mistake(
        "one token too many",
        cell="count",
        code=count(outweighs="d_model + d_kv + 3 * d_ff // 2 + 1"),
        says="The new token's own key counts as well",
    ),
    Mistake(
        "more than the projections alone",
        cell="count",
        code=count(outweighs="d_model + d_kv"),
        says="The feed-forward layer is part of the rest.",
    ),
    Mistake(
        "counted in float32",
        cell="count",
        code=count().replace("]\n    )", "], dtype=torch.float32\n    ).long()"),
        says="The last digits are lost",
    ),
    Mistake(
        "one new token alone",
        cell="count",
        code=count(
            largest="names[int(count(1, kept, d_model, n_heads, n_kv_heads, d_ff)[:3].argmax())]"
        ),
        says="you say 'projections'",
    ),
    Mistake(
        "a search that ends",
        cell="count",
        code=count(outweighs="min(d_model + d_kv + 3 * d_ff // 2, 1000)"),
        says="Your search ends there.",
    ),
    Mistake(
        "stacked, and no narrower",
        cell="to-latent",
        code=latent(
            d_latent="len(both)",
            down="both",
            ups="torch.eye(d_latent).chunk(2)",
        ),
        says="find the rows that others can make",
    ),
    Mistake(
        "a row for every head",
        cell="to-latent",
        code="""def to_latent(w_k, w_v, n_heads, n_kv_heads):
    group = n_heads // n_kv_heads
    keys, values = (
        w.unflatten(0, (n_kv_heads, -1)).repeat_interleave(group, dim=0).flatten(0, 1)
        for w in (w_k, w_v)
    )
    down = torch.cat([keys, values])
    up_k, up_v = torch.eye(len(down)).chunk(2)
    return down, up_k, up_v
""",
        says="The cache is larger than before",
    ),
    Mistake(
        "keys and values apart",
        cell="to-latent",
        code="""def to_latent(w_k, w_v, n_heads, n_kv_heads):
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
    return torch.cat(downs), up_k, up_v
""",
        says="Keys and values are looked at apart",
    ),
    Mistake(
        "repeated in turn",
        cell="to-latent",
        code=latent(every="up.repeat(group, 1)"),
        says="The heads are repeated in turn",
    ),
    Mistake(
        "row by row",
        cell="to-latent",
        code=latent(every="up.repeat_interleave(group, dim=0)"),
        says="the rows of different heads are mixed",
    ),
    Mistake(
        "the shared heads alone",
        cell="to-latent",
        code=latent(every="up"),
        says="repeat them here, where it costs no cache",
    ),
    Mistake(
        "no singular values",
        cell="to-latent",
        code=latent(down="vh[:d_latent]"),
        says="the singular values are missing",
    ),
    Mistake(
        "too narrow",
        cell="to-latent",
        code=latent(d_latent="int((s > 0.3 * s[0]).sum())"),
        says="is too narrow",
    ),
    Mistake(
        "the ups swapped",
        cell="to-latent",
        code=latent(back="down, every(up_v), every(up_k)"),
        says="up_k and up_v have changed places.",
    ),
    Mistake(
        "down transposed",
        cell="to-latent",
        code=latent(back="down.T, every(up_k), every(up_v)"),
        says="It is transposed",
    ),
    Mistake(
        "rounding counts",
        cell="to-latent",
        code=latent(d_latent="int(torch.linalg.matrix_rank(both))"),
        says="the keys and values are right, and a row has",
    ),
    Mistake(
        "the squares of the singular values",
        cell="to-latent",
        code=latent(d_latent="int((s**2 > 1e-4 * s[0] ** 2).sum())"),
        says="is too narrow",
    ),
    Mistake(
        "a limit whatever the largest is",
        cell="to-latent",
        code=latent(d_latent="int((s > 1e-4).sum())"),
        says="a singular value below 1/10000 of the largest one is 0",
    ),
    Mistake(
        "counted from 0 again",
        cell="step",
        code=step(at="torch.arange(n_new)"),
        says="The new tokens are counted from 0 again.",
    ),
    Mistake(
        "one place too far",
        cell="step",
        code=step(at="earlier + (earlier > 0) + torch.arange(n_new)"),
        says="one place too far",
    ),
    Mistake(
        "a piece has one place",
        cell="step",
        code=step(at="torch.full((n_new,), earlier)"),
        says="All tokens of a piece are turned alike.",
    ),
    Mistake(
        "queries not turned",
        cell="step",
        code=step(turn_q="q"),
        says="The keys are turned, and the queries are not.",
    ),
    Mistake(
        "values turned",
        cell="step",
        code=step(turn_v="turn(v, at)"),
        says="The values are turned as well.",
    ),
    Mistake(
        "turned at every step",
        cell="step",
        code=step(
            turn_k="k",
            repeated="(x.repeat_interleave(heads // kv_heads, dim=1) for x in (k, v))",
            kept='{"k": turn(k, torch.arange(k.shape[2])), "v": v}',
        ).replace("all_k, all_v = (", "k = kept['k']\n    all_k, all_v = ("),
        says="The keys from the cache are turned once more at every step.",
    ),
    Mistake(
        "the mask at the first key",
        cell="step",
        code=step(mask="torch.ones(n_new, seq, dtype=torch.bool).tril()"),
        says="The causal mask is aligned with the first key",
    ),
    Mistake(
        "no mask",
        cell="step",
        code=step(mask="torch.ones(n_new, seq, dtype=torch.bool)"),
        says="New tokens see later ones of the same piece.",
    ),
    Mistake(
        "heads shared in turn",
        cell="step",
        code=step(repeated="(x.repeat(1, heads // kv_heads, 1, 1) for x in (k, v))"),
        says="The heads of keys are repeated in turn",
    ),
    Mistake(
        "a cache of repeated heads",
        cell="step",
        code=step(
            kept='{"k": k, "v": v, "all": [x.repeat_interleave(heads // kv_heads, 1) '
            "for x in (k, v)]}"
        ),
        says="It holds keys and values for every head of queries.",
    ),
    Mistake(
        "the text as a cache",
        cell="step",
        code="""def step(layer, new, cache=None):
    text = new if cache is None else torch.cat([cache, new], dim=1)
    at = torch.arange(text.shape[1])
    q = turn(apart(layer.w_q(text), layer.n_heads), at)
    k = turn(apart(layer.w_k(text), layer.n_kv_heads), at)
    v = apart(layer.w_v(text), layer.n_kv_heads)
    heads, _ = grouped_attention(q, k, v, causal=True)
    return layer.w_o(heads.transpose(1, 2).flatten(2))[:, -new.shape[1] :], text
""",
        says="project new tokens alone",
    ),
    Mistake(
        "a list that grows",
        cell="step",
        code=step(kept="(k, v)")
        .replace('cache["k"]', "cache[-1][0]")
        .replace('cache["v"]', "cache[-1][1]")
        .replace("kept = (k, v)", "kept = cache or []\n    kept[:] = [(k, v)]"),
        says="A second continuation from the same cache",
    ),
    Mistake(
        "no divisor",
        cell="step",
        code=step(divisor="1"),
        says="The scores are not divided by √d_key.",
    ),
    Mistake(
        "the cache in a global name",
        cell="step",
        code="KEPT = {}\n\n\n"
        + step(kept="True")
        .replace("cache[", "KEPT[")
        .replace("kept = True", 'kept = True\n    KEPT["k"], KEPT["v"] = k, v'),
        says="something is kept outside of the cache",
    ),
    Mistake(
        "a softmax of the tile",
        cell="tile-gradients",
        code=tile(weights="scores.softmax(dim=-1)"),
        says="The weights are a softmax over this tile.",
    ),
    Mistake(
        "the mean of the tile",
        cell="tile-gradients",
        code=tile(mean="(weights * pulled).sum(dim=-1, keepdim=True)"),
        says="The mean that is subtracted is over this tile's keys.",
    ),
    Mistake(
        "no mean",
        cell="tile-gradients",
        code=tile(mean="0"),
        says="takes weight from all other keys",
    ),
    Mistake(
        "the second term forgotten",
        cell="tile-gradients",
        code=tile(scores_back="weights * (pulled - mean)"),
        says="grad_log_sum is not used.",
    ),
    Mistake(
        "the second term without the weight",
        cell="tile-gradients",
        code=tile(scores_back="weights * (pulled - mean) + grad_log_sum.unsqueeze(1)"),
        says="grad_log_sum is added without the weight.",
    ),
    Mistake(
        "the second term subtracted",
        cell="tile-gradients",
        code=tile(scores_back="weights * (pulled - mean - grad_log_sum.unsqueeze(1))"),
        says="The second term has the wrong sign",
    ),
    Mistake(
        "the scale once",
        cell="tile-gradients",
        code=tile(back="1"),
        says="and not in the gradients",
    ),
    Mistake(
        "no scale",
        cell="tile-gradients",
        code=tile(root="1.0"),
        says="1/√d_key is missing",
    ),
    Mistake(
        "divided by the logarithm",
        cell="tile-gradients",
        code=tile(weights="scores.exp() / log_sum.unsqueeze(1)"),
        says="The weights are exp(score) / log_sum.",
    ),
    Mistake(
        "the values' gradient from the scores'",
        cell="tile-gradients",
        code=tile(of_values="scores_back, grad_output"),
        says="The gradient of the values takes the gradients of the scores.",
    ),
    Mistake(
        "through a softmax of the tile",
        cell="tile-gradients",
        code="""def tile_gradients(query, key, value, output, log_sum, grad_output, grad_log_sum):
    inputs = [x.clone().requires_grad_() for x in (query, key, value)]
    q, k, v = inputs
    scores = q @ k.T / q.shape[-1] ** 0.5
    out = scores.softmax(dim=-1) @ v
    loss = (out * grad_output).sum() + (scores.logsumexp(dim=-1) * grad_log_sum).sum()
    return torch.autograd.grad(loss, inputs)
""",
        says="These are the gradients of attention to this tile alone",
    ),
    Mistake(
        "the sum before the quotient",
        cell="tile-gradients",
        code=tile(weights="torch.exp(scores) / torch.exp(log_sum).unsqueeze(1)"),
        says="`exp` overflows.",
    ),
    Mistake(
        "scaled by d_value",
        cell="tile-gradients",
        code=tile(root="value.shape[-1] ** 0.5"),
        says="The scores are divided by √d_value.",
    ),
    Mistake(
        "token by token alone",
        cell="find-fault",
        code=find(pieces="tokens(alone)"),
        says="Token by token this reader is right",
    ),
    Mistake(
        "one sentence alone",
        cell="find-fault",
        code=find(company="read(tokens(alone)), right"),
        says="One sentence alone is read right",
    ),
    Mistake(
        "the same sentence twice",
        cell="find-fault",
        code=find(ids="torch.randint(0, vocab, (1, 12)).expand(3, 12)"),
        says="Read two different sentences side by side",
    ),
    Mistake(
        "called once",
        cell="find-fault",
        code=find(again="pass"),
        says="Call it twice",
    ),
    Mistake(
        "too short a text",
        cell="find-fault",
        code=find(ids="torch.randint(0, vocab, (3, 6))"),
        says="A short text is read right.",
    ),
    Mistake(
        "no tolerance",
        cell="find-fault",
        code=find(close="torch.equal(a, b)"),
        says="compare with a tolerance",
    ),
    Mistake(
        "one piece of several tokens",
        cell="find-fault",
        code=find(pieces="[alone]"),
        says="Give it a second piece of several tokens.",
    ),
    Mistake(
        "whatever goes wrong in the first call",
        cell="find-fault",
        code=find().replace('"places" if i < 3 else "oldest"', '"oldest"'),
        says="the second token is wrong already",
    ),
    Mistake(
        "looks inside of the reader",
        cell="find-fault",
        code="""def find_fault(read, whole, vocab):
    names = ("places", "future", "alignment", "oldest", "sentence", "last text")
    held = [cell.cell_contents for cell in getattr(read, "__closure__", None) or ()]
    held += list(getattr(read, "__dict__", {}).values())
    held += list(getattr(read, "__defaults__", None) or ())
    held += list((getattr(read, "keywords", None) or {}).values())
    held += list(getattr(read, "args", ()))
    held += list(getattr(getattr(read, "__self__", None), "__dict__", {}).values())
    found = [name for name in held if isinstance(name, str) and name in names]
    return found[0] if found else "none"
""",
        says='You say "none" of a reader',
    ),
]

RIGHT = [
    Right(
        "in one formula",
        cell="count",
        code=count(),
    ),
    Right(
        "by the book's count of a layer, and by search",
        cell="count",
        code="""from attention.cost.dense import grouped_query


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
    return low
""",
    ),
    Right(
        "the singular values on the other side",
        cell="to-latent",
        code=latent(),
    ),
    Right(
        "rows of the weights that the others cannot make",
        cell="to-latent",
        code="""def to_latent(w_k, w_v, n_heads, n_kv_heads):
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
    return down.float(), up_k[chosen].float(), up_v[chosen].float()
""",
    ),
    Right(
        "in a dict",
        cell="step",
        code=step(),
    ),
    Right(
        "keys kept unturned, with the book's rotary positions",
        cell="step",
        code="""def step(layer, new, cache=None):
    k, v = (apart(w(new), layer.n_kv_heads) for w in (layer.w_k, layer.w_v))
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    q, turned = Rotary(layer.d_key)(apart(layer.w_q(new), layer.n_heads), k)
    heads, _ = grouped_attention(q, turned, v, causal=True)
    return layer.w_o(heads.transpose(1, 2).flatten(2)), (k, v)
""",
    ),
    Right(
        "a list of tokens, one query at a time",
        cell="step",
        code="""class Token:
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
    return torch.cat(outputs, dim=1), tokens
""",
    ),
    Right(
        "by einsum",
        cell="tile-gradients",
        code=tile(),
    ),
    Right(
        "by torch, with all other keys as one",
        cell="tile-gradients",
        code="""def tile_gradients(query, key, value, output, log_sum, grad_output, grad_log_sum):
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
    return torch.autograd.grad(loss, inputs)
""",
    ),
    Right(
        "by a loop over the queries",
        cell="tile-gradients",
        code="""def tile_gradients(query, key, value, output, log_sum, grad_output, grad_log_sum):
    found = [torch.zeros_like(x) for x in (query, key, value)]
    root = query.shape[1] ** 0.5
    for i in range(len(query)):
        for j in range(len(key)):
            weight = (query[i] @ key[j] / root - log_sum[i]).exp()
            pull = weight * (grad_output[i] @ (value[j] - output[i]) + grad_log_sum[i])
            found[0][i] += pull * key[j] / root
            found[1][j] += pull * query[i] / root
            found[2][j] += weight * grad_output[i]
    return tuple(found)
""",
    ),
    Right(
        "another text, with company in the end",
        cell="find-fault",
        code=find(),
    ),
    Right(
        "an experiment for each fault",
        cell="find-fault",
        code="""def find_fault(read, whole, vocab):
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
    return "sentence" if wrong(4, [2, 1, 1]) else "none"
""",
    ),
]
