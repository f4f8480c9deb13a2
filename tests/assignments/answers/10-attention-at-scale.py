"""Answers to 10-attention-at-scale: mistakes that students make, and other right answers."""

from tests.assignments.submissions import Mistake, Right

HEARD = """def dilated(seq, window, dilation):
    mask = torch.zeros(seq, seq, dtype=torch.bool)
    for i in range(seq):
        for j in {steps}:
            if {inside}:
                mask[{place}] = True
    return mask


def first_heard(masks):
    n = len(masks[0])
    sources = [{{i}} for i in range(n)]
    first = torch.full((n, n), {never})
    first.fill_diagonal_(0)
    for number, mask in enumerate({masks}):
        {before}
        for i in range(n):
            for j in mask[i].nonzero().flatten().tolist():
                sources[i] = sources[i] | {heard}
        for i in range(n):
            for j in sources[i]:
                if {new}:
                    first[i, j] = number + {start}
    return {back}
"""


def heard(**changed):
    """A right answer with one thing changed."""
    parts = {
        "steps": "range(window + 1)",
        "inside": "i - j * dilation >= 0",
        "place": "i, i - j * dilation",
        "never": "-1",
        "masks": "masks",
        "before": "entered = list(sources)",
        "heard": "entered[j]",
        "new": "i != j and first[i, j] < 0",
        "start": "1",
        "back": "first",
    }
    return HEARD.format(**parts | changed)


STREAM = """def stream(query, key, value, window, n_sinks):
    seq, d_key = query.shape
    outputs = torch.zeros(seq, value.shape[1])
    for t in range(seq):
        start = {start}
        sinks = {sinks}
        seen = {seen}
        places = {places}
        q = {q}
        k = {k}
        weights = (k @ q / {divisor}).softmax(dim=0)
        outputs[t] = weights @ {v}
    return outputs
"""


def stream(**changed):
    """A right answer with one thing changed."""
    parts = {
        "start": "max(t - window, 0)",
        "sinks": "list(range(min(n_sinks, start)))",
        "seen": "sinks + list(range(start, t + 1))",
        "places": "torch.arange(len(seen))",
        "q": "turn(query[t : t + 1], places[-1:])[0]",
        "k": "turn(key[seen], places)",
        "v": "value[seen]",
        "divisor": "math.sqrt(d_key)",
    }
    return STREAM.format(**parts | changed)


FADING = """def whole(query, key, value, alpha):
    outputs, state = [], None
    for q, k, v, a in zip(query, key, value, alpha):
        output, state = step(q, k, v, a, state)
        outputs.append(output)
    return torch.stack(outputs)


def step(query, key, value, alpha, state=None):
    q, k = {q}, {k}
    if state is None:
        state = torch.zeros(len(key), len(value)), torch.zeros(len(key))
    table, total = state
    table = {table}
    total = {total}
    return {back}
"""


def fading(**changed):
    """A right answer with one thing changed."""
    parts = {
        "q": "features(query)",
        "k": "features(key)",
        "table": "alpha * table + torch.outer(k, value)",
        "total": "alpha * total + k",
        "back": "(q @ table) / (q @ total), (table, total)",
    }
    return FADING.format(**parts | changed)


STEP = fading().split("\n\n\n")[1]

FOUND = """def found(x, rotations, top):
    seq, rounds = len(x), len(rotations)
    keys = {keys}
    scores = x @ keys.T
    {itself}
    right = scores.argsort(dim=1, descending=True)[:, :{top}]
    met = torch.zeros(seq, seq, dtype=torch.bool)
    table = torch.zeros(2, rounds)
    for r in range(rounds):
        hashed = x @ rotations[r]
        bucket = {bucket}
        together = bucket.unsqueeze(0) == bucket.unsqueeze(1)
        {alone}
        met = {met}
        table[0, r] = {hit}
        table[1, r] = {looked}
    return table
"""


def found(**changed):
    """A right answer with one thing changed."""
    parts = {
        "keys": "x / x.norm(dim=1, keepdim=True)",
        "itself": "scores.fill_diagonal_(-torch.inf)",
        "top": "top",
        "bucket": "torch.cat([hashed, -hashed], dim=1).max(dim=1).indices",
        "alone": "together.fill_diagonal_(False)",
        "met": "met | together",
        "hit": "met.gather(1, right).float().mean()",
        "looked": "met.sum() / (seq * seq - seq)",
    }
    return FOUND.format(**parts | changed)


JUDGE = """def judge(claim, data):
    if claim == "square":
        lengths = sorted(data)
        long, short = {lengths}
        number = {e}
        return number, {square}
    if claim == "remembers":
        first, second = data
        number = {share}
        return number, {remembers}
    weights, values, window = data
    place = torch.arange(len(weights))
    near = weights.masked_fill({behind}, 0.0)
    {anew}
    before, after = weights @ values, near @ values
    number = {moved}
    return number, {window}
"""


def judge(**changed):
    """A right answer with one thing changed."""
    parts = {
        "lengths": "lengths[-1], lengths[-1] // 2",
        "e": "math.log2(statistics.median(data[long]) / statistics.median(data[short]))",
        "square": '"supported" if abs(number - 2) <= 0.2 else "refuted"',
        "share": "statistics.mean(float(a > b) for a in first for b in second)",
        "remembers": '"supported" if number == 1 else "refuted" if number == 0 else "open"',
        "behind": "place[:, None] - place > window",
        "anew": "near = near / near.sum(dim=1, keepdim=True)",
        "moved": "((after - before).norm(dim=1) / before.norm(dim=1)).max().item()",
        "window": '"refuted" if number > 0.05 else "supported"',
    }
    return JUDGE.format(**parts | changed)


MISTAKES = [
    Mistake(
        "the own token counted in the window",
        cell="first-heard",
        code=heard(steps="range(window)"),
        says="You count it among them.",
    ),
    Mistake(
        "both ways",
        cell="first-heard",
        code=heard(
            steps="range(-window, window + 1)",
            inside="0 <= i - j * dilation < seq",
        ),
        says="The window looks ahead.",
    ),
    Mistake(
        "no gaps",
        cell="first-heard",
        code=heard(steps="range(window * dilation + 1)", inside="i >= j", place="i, i - j"),
        says="Those between the steps of `dilation` are not.",
    ),
    Mistake(
        "dilation tokens in between",
        cell="first-heard",
        code=heard(inside="i >= j * (dilation + 1)", place="i, i - j * (dilation + 1)"),
        says="dilation 1 is a plain window",
    ),
    Mistake(
        "columns are queries",
        cell="first-heard",
        code=heard(place="i - j * dilation, i"),
        says="The window is the wrong way round",
    ),
    Mistake(
        "layers in reverse",
        cell="first-heard",
        code=heard(masks="masks[::-1]"),
        says="The layers are taken in reverse",
    ),
    Mistake(
        "the product the wrong way round",
        cell="first-heard",
        code=heard().split("\n\n\n")[0]
        + """


def first_heard(masks):
    heard = torch.eye(len(masks[0]))
    first = torch.where(heard > 0, 0, -1)
    for number, mask in enumerate(masks):
        heard = heard + heard @ mask.float()
        first[(heard > 0) & (first < 0)] = number + 1
    return first
""",
        says="The product is the wrong way round.",
    ),
    Mistake(
        "no residual",
        cell="first-heard",
        code=heard(before="entered, sources = sources, [set() for _ in range(n)]"),
        says="What a token has heard is lost",
    ),
    Mistake(
        "seen directly",
        cell="first-heard",
        code=heard(heard="{j}"),
        says="A token also hears of it through others",
    ),
    Mistake(
        "the first mask in all layers",
        cell="first-heard",
        code=heard(masks="masks[:1] * len(masks)"),
        says="The first layer's mask is used in all layers.",
    ),
    Mistake(
        "layers from 0",
        cell="first-heard",
        code=heard(start="0"),
        says="The layers are counted from 0.",
    ),
    Mistake(
        "never is 0",
        cell="first-heard",
        code=heard(never="0", new="i != j and first[i, j] == 0"),
        says="Where a token never hears of another, -1 is due.",
    ),
    Mistake(
        "rows that this layer has changed",
        cell="first-heard",
        code=heard(before="pass", heard="sources[j]"),
        says="All rows of a layer see what entered it.",
    ),
    Mistake(
        "places of the text",
        cell="stream",
        code=stream(places="torch.tensor(seen)"),
        says="The places are those of the text.",
    ),
    Mistake(
        "the query at its place in the text",
        cell="stream",
        code=stream(q="turn(query[t : t + 1], torch.tensor([t]))[0]"),
        says="The query stands at its place in the text",
    ),
    Mistake(
        "the query behind its key",
        cell="stream",
        code=stream(q="turn(query[t : t + 1], places[-1:] + 1)[0]"),
        says="one place behind its own key",
    ),
    Mistake(
        "the query at 0",
        cell="stream",
        code=stream(q="turn(query[t : t + 1], torch.zeros(1))[0]"),
        says="The query stands at place 0.",
    ),
    Mistake(
        "nothing turned",
        cell="stream",
        code=stream(q="query[t]", k="key[seen]"),
        says="Nothing is turned.",
    ),
    Mistake(
        "values turned",
        cell="stream",
        code=stream(v="turn(value[seen], places)"),
        says="The values are turned as well.",
    ),
    Mistake(
        "one key too few",
        cell="stream",
        code=stream(start="max(t - window + 1, 0)"),
        says="The window is one key too narrow",
    ),
    Mistake(
        "no sinks",
        cell="stream",
        code=stream(sinks="[]"),
        says="The sinks are not seen.",
    ),
    Mistake(
        "sinks twice",
        cell="stream",
        code=stream(sinks="list(range(min(n_sinks, t + 1)))"),
        says="Each key once.",
    ),
    Mistake(
        "sinks behind the window",
        cell="stream",
        code=stream(
            seen="list(range(start, t + 1)) + sinks",
            q="turn(query[t : t + 1], places[t - start : t - start + 1])[0]",
        ),
        says="The sinks stand behind the window.",
    ),
    Mistake(
        "the whole past",
        cell="stream",
        code=stream(start="0"),
        says="All earlier tokens are seen.",
    ),
    Mistake(
        "not divided",
        cell="stream",
        code=stream(divisor="1"),
        says="The scores are not divided by √d_key.",
    ),
    Mistake(
        "scaled by the window",
        cell="stream",
        code=stream(divisor="math.sqrt(window)"),
        says="The scores are divided by √window.",
    ),
    Mistake(
        "a window of 0 keeps everything",
        cell="stream",
        code="""def stream(query, key, value, window, n_sinks):
    seq, d_key = query.shape
    outputs = []
    for t in range(seq):
        seen = [*range(min(n_sinks, t)), *list(range(n_sinks, t))[-window:], t]
        places = torch.arange(len(seen))
        k = turn(key[seen], places)
        q = turn(query[t : t + 1], places[-1:])
        weights = torch.softmax(q @ k.T / d_key**0.5, dim=-1)
        outputs.append((weights @ value[seen])[0])
    return torch.stack(outputs)
""",
        says="With a window of 0 everything is seen",
    ),
    Mistake(
        "a window that begins before the text",
        cell="stream",
        code="""def stream(query, key, value, window, n_sinks):
    seq, d_key = query.shape
    outputs = []
    for t in range(seq):
        recent = list(range(seq))[t - window : t + 1]
        seen = sorted({*range(min(n_sinks, t + 1)), *recent, t})
        places = torch.arange(len(seen))
        k = turn(key[seen], places)
        q = turn(query[t : t + 1], places[-1:])
        weights = torch.softmax(q @ k.T / d_key**0.5, dim=-1)
        outputs.append((weights @ value[seen])[0])
    return torch.stack(outputs)
""",
        says="the window begins before it",
    ),
    Mistake(
        "a token fades by its own alpha",
        cell="fading",
        code=fading(
            table="alpha * (table + torch.outer(k, value))",
            total="alpha * (total + k)",
            back="(q @ table) / (q @ total).clamp(min=1e-9), (table, total)",
        ),
        says="A token fades by its own α.",
    ),
    Mistake(
        "the sum does not fade",
        cell="fading",
        code=fading(total="total + k"),
        says="The sum of the weights does not fade.",
    ),
    Mistake(
        "nothing fades",
        cell="fading",
        code=fading(table="table + torch.outer(k, value)", total="total + k"),
        says="Nothing fades",
    ),
    Mistake(
        "not divided",
        cell="fading",
        code=fading(back="q @ table, (table, total)"),
        says="It is not divided by the sum of the weights.",
    ),
    Mistake(
        "no features",
        cell="fading",
        code=fading(q="query", k="key"),
        says="φ is missing",
    ),
    Mistake(
        "features of the keys alone",
        cell="fading",
        code=fading(q="query"),
        says="φ is used on the keys alone.",
    ),
    Mistake(
        "a moving average",
        cell="fading",
        code=fading(
            table="alpha * table + torch.outer(k, value) * (1 - alpha if total.any() else 1)",
            total="alpha * total + k * (1 - alpha if total.any() else 1)",
        ),
        says="The new token is written with the part 1 − α.",
    ),
    Mistake(
        "all keys kept",
        cell="fading",
        code=fading().split("\n\n\n")[0]
        + """


def step(query, key, value, alpha, state=None):
    faded = [(alpha * w, k, v) for w, k, v in state or []]
    tokens = [*faded, (torch.tensor(1.0), features(key), value)]
    weights = torch.stack([w * (features(query) @ k) for w, k, _ in tokens])
    values = torch.stack([v for _, _, v in tokens])
    return weights @ values / weights.sum(), tokens
""",
        says="Keep sums over the tokens, and no tokens.",
    ),
    Mistake(
        "the state changed in place",
        cell="fading",
        code=fading(
            table="table.mul_(alpha).add_(torch.outer(k, value))", total="total.mul_(alpha).add_(k)"
        ),
        says="Two steps from the same state differ",
    ),
    Mistake(
        "a product divided by a product",
        cell="fading",
        code="""def whole(query, key, value, alpha):
    product = alpha.cumprod(dim=0)
    weights = features(query) @ features(key).T * (product[:, None] / product)
    weights = weights.tril()
    return weights @ value / weights.sum(dim=1, keepdim=True)


"""
        + STEP,
        says="fails where an α is 0",
    ),
    Mistake(
        "the future",
        cell="fading",
        code="""def whole(query, key, value, alpha):
    seq = len(query)
    kept = torch.ones(seq, seq)
    for i in range(seq):
        for j in range(i):
            kept[i, j] = alpha[j + 1 : i + 1].prod()
    weights = features(query) @ features(key).T * kept
    return weights @ value / weights.sum(dim=1, keepdim=True)


"""
        + STEP,
        says="A query sees later tokens.",
    ),
    Mistake(
        "the newest alpha for all",
        cell="fading",
        code="""def whole(query, key, value, alpha):
    place = torch.arange(len(query))
    apart = place[:, None] - place
    kept = torch.where(apart >= 0, alpha[:, None] ** apart.clamp(min=0), 0.0)
    weights = features(query) @ features(key).T * kept
    return weights @ value / weights.sum(dim=1, keepdim=True)


"""
        + STEP,
        says="All that lies back fades by the newest α.",
    ),
    Mistake(
        "itself among the right keys",
        cell="found",
        code=found(itself="pass", alone="pass", looked="(met.sum() - seq) / (seq * seq - seq)"),
        says="A query's own token is among the right keys.",
    ),
    Mistake(
        "itself among those looked at",
        cell="found",
        code=found(alone="pass"),
        says="A query's own token is among those that are looked at.",
    ),
    Mistake(
        "of all tokens",
        cell="found",
        code=found(looked="met.sum() / seq**2"),
        says="The share looked at is of all tokens.",
    ),
    Mistake(
        "each round alone",
        cell="found",
        code=found(met="together"),
        says="Each column is one round alone.",
    ),
    Mistake(
        "met in every round",
        cell="found",
        code=found(met="together if r == 0 else met & together"),
        says="A key must be met in every round here.",
    ),
    Mistake(
        "half of the buckets",
        cell="found",
        code=found(bucket="hashed.argmax(dim=1)"),
        says="Half of the buckets are missing",
    ),
    Mistake(
        "opposites together",
        cell="found",
        code=found(bucket="hashed.abs().argmax(dim=1)"),
        says="A row and its opposite fall into one bucket",
    ),
    Mistake(
        "keys as long as they are",
        cell="found",
        code=found(keys="x"),
        says="A key is scaled to length 1 first",
    ),
    Mistake(
        "any key will do",
        cell="found",
        code=found(hit="met.gather(1, right).any(dim=1).float().mean()"),
        says="A query counts as soon as one of its right keys is found.",
    ),
    Mistake(
        "how many of those looked at are right",
        cell="found",
        code=found(hit="met.gather(1, right).sum() / met.sum()"),
        says="This is how many of the keys looked at are right.",
    ),
    Mistake(
        "the best key alone",
        cell="found",
        code=found(top="1"),
        says="Only the best key counts.",
    ),
    Mistake(
        "shares added up",
        cell="found",
        code=found(met="together").replace("return table", "return table.cumsum(dim=1)"),
        says="The shares of the rounds are added up.",
    ),
    Mistake(
        "only earlier tokens are looked at",
        cell="found",
        code="""def found(x, rotations, top):
    seq = len(x)
    own = torch.eye(seq, dtype=torch.bool)
    scores = x @ (x / x.norm(dim=-1, keepdim=True)).T
    scores = scores.masked_fill(own, float("-inf"))
    right = torch.zeros(seq, seq, dtype=torch.bool)
    right.scatter_(1, scores.topk(top, dim=1).indices, True)
    looked = torch.zeros(seq, seq, dtype=torch.bool)
    shares = []
    for r in rotations:
        bucket = torch.cat([x @ r, -x @ r], dim=-1).argmax(dim=-1)
        looked = looked | ((bucket[:, None] == bucket).tril(-1))
        hit = (looked & right).sum() / (seq * top)
        shares.append(torch.stack([hit, looked.sum() / (seq * (seq - 1))]))
    return torch.stack(shares, dim=1)
""",
        says="Only earlier tokens are looked at.",
    ),
    Mistake(
        "a query's own token takes one of the right places",
        cell="found",
        code="""def found(x, rotations, top):
    seq = len(x)
    own = torch.eye(seq, dtype=torch.bool)
    scores = x @ (x / x.norm(dim=-1, keepdim=True)).T
    right = torch.zeros(seq, seq, dtype=torch.bool)
    right.scatter_(1, scores.topk(top, dim=1).indices, True)
    looked = torch.zeros(seq, seq, dtype=torch.bool)
    shares = []
    for r in rotations:
        bucket = torch.cat([x @ r, -x @ r], dim=-1).argmax(dim=-1)
        looked = looked | ((bucket[:, None] == bucket) & ~own)
        hit = (looked & right).sum() / (seq * top)
        shares.append(torch.stack([hit, looked.sum() / (seq * (seq - 1))]))
    return torch.stack(shares, dim=1)
""",
        says="where it takes the place of another",
    ),
    Mistake(
        "by the means",
        cell="judge",
        code=judge(e="math.log2(statistics.mean(data[long]) / statistics.mean(data[short]))"),
        says="This is by the means.",
    ),
    Mistake(
        "fitted to all lengths",
        cell="judge",
        code=judge(
            e="statistics.linear_regression([math.log(n) for n in lengths], "
            "[math.log(statistics.median(data[n])) for n in lengths]).slope"
        ),
        says="This is fitted to all lengths.",
    ),
    Mistake(
        "from the shortest to the longest",
        cell="judge",
        code=judge(
            lengths="lengths[-1], lengths[0]",
            e="math.log(statistics.median(data[long]) / statistics.median(data[short]), "
            "long / short)",
        ),
        says="This is between the shortest and the longest text.",
    ),
    Mistake(
        "the last two of the dict",
        cell="judge",
        code=judge(lengths="list(data)[:-3:-1]"),
        says="The lengths do not stand in order.",
    ),
    Mistake(
        "base e",
        cell="judge",
        code=judge(e="math.log(statistics.median(data[long]) / statistics.median(data[short]))"),
        says="This is the natural logarithm.",
    ),
    Mistake(
        "never supported",
        cell="judge",
        code=judge(square='"open"'),
        says="The criterion leaves nothing open",
    ),
    Mistake(
        "run by run",
        cell="judge",
        code=judge(share="statistics.mean(float(a > b) for a, b in zip(first, second))"),
        says="You pair run 0 with run 0",
    ),
    Mistake(
        "the difference of the means",
        cell="judge",
        code=judge(
            share="statistics.mean(first) - statistics.mean(second)",
            remembers='"supported" if number > 0 else "refuted"',
        ),
        says="This is the difference of the means.",
    ),
    Mistake(
        "more than half of the pairs",
        cell="judge",
        code=judge(remembers='"supported" if number > 0.5 else "refuted"'),
        says="The runs overlap",
    ),
    Mistake(
        "the weight behind the window",
        cell="judge",
        code=judge(moved="(weights - weights.tril().triu(-window)).sum(dim=1).max().item()"),
        says="This is the weight behind the window.",
    ),
    Mistake(
        "not shared anew",
        cell="judge",
        code=judge(anew="pass"),
        says="The weights that are left do not share 1 anew.",
    ),
    Mistake(
        "the mean over the queries",
        cell="judge",
        code=judge(moved="((after - before).norm(dim=1) / before.norm(dim=1)).mean().item()"),
        says="This is the mean over the queries.",
    ),
    Mistake(
        "a length",
        cell="judge",
        code=judge(moved="(after - before).norm(dim=1).max().item()"),
        says="This is a length, and not a share",
    ),
    Mistake(
        "a narrower window",
        cell="judge",
        code=judge(behind="place[:, None] - place >= window"),
        says="The window is one key too narrow",
    ),
    Mistake(
        "the weight decides",
        cell="judge",
        code=judge(
            window='"refuted" if (weights.tril(-window - 1).sum(dim=1) > 0.05).any() '
            'else "supported"'
        ),
        says="how far the output moves decides",
    ),
    Mistake(
        "a tie is a win",
        cell="judge",
        code=judge(share="statistics.mean(float(a >= b) for a in first for b in second)"),
        says="A pair with equal shares is counted.",
    ),
    Mistake(
        "one norm over all queries",
        cell="judge",
        code=judge(moved="((after - before).norm() / before.norm()).item()"),
        says="This is one length for all queries together",
    ),
    Mistake(
        "the two longest, whatever their lengths",
        cell="judge",
        code=judge(lengths="lengths[-1], lengths[-2]"),
        says="This is between the two longest texts",
    ),
]

RIGHT = [
    Right(
        "sets of sources",
        cell="first-heard",
        code=heard(),
    ),
    Right(
        "a sum of diagonals, and each source followed",
        cell="first-heard",
        code="""def dilated(seq, window, dilation):
    steps = [torch.ones(max(seq - j * dilation, 0)) for j in range(window + 1)]
    mask = sum(
        torch.diag(step, -j * dilation) for j, step in enumerate(steps) if len(step)
    )
    return mask > 0


def first_heard(masks):
    n = len(masks[0])
    columns = []
    for source in range(n):
        first = torch.full((n,), -1)
        first[source] = 0
        for number, mask in enumerate(masks, 1):
            knows = (first >= 0).nonzero().flatten()
            reached = mask[:, knows].any(dim=1)
            first = torch.where(reached & (first < 0), number, first)
        columns.append(first)
    return torch.stack(columns, dim=1)
""",
    ),
    Right(
        "row by row",
        cell="stream",
        code=stream(),
    ),
    Right(
        "a list that drops what is no longer seen",
        cell="stream",
        code="""def stream(query, key, value, window, n_sinks):
    cache, outputs = [], []
    for q, k, v in zip(query.split(1), key.split(1), value.split(1)):
        cache.append((k, v))
        if len(cache) > n_sinks + window + 1:
            del cache[n_sinks]
        keys, values = (torch.cat(rows) for rows in zip(*cache))
        keys = turn(keys, torch.arange(len(cache)))
        q = turn(q, torch.tensor([len(cache) - 1]))
        outputs.append(F.scaled_dot_product_attention(q[None], keys[None], values[None])[0])
    return torch.cat(outputs)
""",
    ),
    Right(
        "places from a mask",
        cell="stream",
        code="""def stream(query, key, value, window, n_sinks):
    from attention import sink_mask

    mask = sink_mask(len(query), window, n_sinks)
    rows = []
    for t, seen in enumerate(mask):
        places = (seen.cumsum(dim=0) - 1).clamp(min=0)
        scores = turn(query[[t]], places[[t]]) @ turn(key, places).T / key.shape[1] ** 0.5
        rows.append(scores.masked_fill(~seen, -torch.inf).softmax(dim=-1) @ value)
    return torch.cat(rows)
""",
    ),
    Right(
        "the recurrence, and the recurrence again",
        cell="fading",
        code=fading(),
    ),
    Right(
        "values with a 1, in one table",
        cell="fading",
        code="""def whole(query, key, value, alpha):
    seq = len(query)
    kept = torch.zeros(seq, seq)
    for j in range(seq):
        kept[j:, j] = torch.cat([torch.ones(1), alpha[j + 1 :]]).cumprod(dim=0)
    weights = kept * (features(query) @ features(key).mT)
    return (weights / weights.sum(dim=-1, keepdim=True)) @ value


def step(query, key, value, alpha, state=None):
    written = features(key)[:, None] * torch.cat([value, torch.ones(1)])
    state = written if state is None else alpha * state + written
    *above, below = features(query) @ state
    return torch.stack(above) / below, state
""",
    ),
    Right(
        "round by round",
        cell="found",
        code=found(),
    ),
    Right(
        "with sets",
        cell="found",
        code="""def found(x, rotations, top):
    seq = len(x)
    scores = x @ F.normalize(x, dim=-1).T
    both = torch.cat([rotations, -rotations], dim=-1)
    buckets = torch.einsum("sd,rdb->rsb", x, both).argmax(-1).tolist()
    rows = [[], []]
    for r in range(len(rotations)):
        hits = looks = 0
        for i in range(seq):
            order = [j for j in scores[i].argsort(descending=True).tolist() if j != i]
            seen = {j for b in buckets[: r + 1] for j in range(seq) if b[j] == b[i]} - {i}
            hits += len(seen & set(order[:top]))
            looks += len(seen)
        rows[0].append(hits / (seq * top))
        rows[1].append(looks / (seq * (seq - 1)))
    return torch.tensor(rows)
""",
    ),
    Right(
        "claim by claim",
        cell="judge",
        code=judge(),
    ),
    Right(
        "with torch",
        cell="judge",
        code="""def square(data):
    n = torch.tensor(list(data)).max().item()
    long, short = (torch.tensor(data[k]).double().median() for k in (n, n / 2))
    e = torch.log2(long / short)
    return e, "supported" if 1.8 <= e <= 2.2 else "refuted"


def remembers(data):
    first, second = map(torch.tensor, data)
    share = (first[:, None] > second).float().mean()
    if share in (0, 1):
        return share, ("refuted", "supported")[int(share)]
    return share, "open"


def window(data):
    weights, values, width = data
    largest = torch.zeros(())
    for t, row in enumerate(weights):
        kept = torch.zeros_like(row)
        start = max(0, t - width)
        kept[start : t + 1] = row[start : t + 1] / row[start : t + 1].sum()
        out = row @ values
        largest = torch.maximum(largest, (kept @ values - out).norm() / out.norm())
    return largest, "supported" if largest <= 0.05 else "refuted"


def judge(claim, data):
    return {"square": square, "remembers": remembers, "window": window}[claim](data)
""",
    ),
]
