"""Answers to 10-attention-at-scale: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "first-heard": """def dilated(seq, window, dilation):
    mask = torch.zeros(seq, seq, dtype=torch.bool)
    for i in range(seq):
        for j in range(window + 1):
            if i - j * dilation >= 0:
                mask[i, i - j * dilation] = True
    return mask


def first_heard(masks):
    n = len(masks[0])
    sources = [{i} for i in range(n)]
    first = torch.full((n, n), -1)
    first.fill_diagonal_(0)
    for number, mask in enumerate(masks):
        entered = list(sources)
        for i in range(n):
            for j in mask[i].nonzero().flatten().tolist():
                sources[i] = sources[i] | entered[j]
        for i in range(n):
            for j in sources[i]:
                if i != j and first[i, j] < 0:
                    first[i, j] = number + 1
    return first""",
    "stream": """def stream(query, key, value, window, n_sinks):
    seq, d_key = query.shape
    outputs = torch.zeros(seq, value.shape[1])
    for t in range(seq):
        start = max(t - window, 0)
        sinks = list(range(min(n_sinks, start)))
        seen = sinks + list(range(start, t + 1))
        places = torch.arange(len(seen))
        q = turn(query[t : t + 1], places[-1:])[0]
        k = turn(key[seen], places)
        weights = (k @ q / math.sqrt(d_key)).softmax(dim=0)
        outputs[t] = weights @ value[seen]
    return outputs""",
    "fading": """def whole(query, key, value, alpha):
    outputs, state = [], None
    for q, k, v, a in zip(query, key, value, alpha):
        output, state = step(q, k, v, a, state)
        outputs.append(output)
    return torch.stack(outputs)


def step(query, key, value, alpha, state=None):
    q, k = features(query), features(key)
    if state is None:
        state = torch.zeros(len(key), len(value)), torch.zeros(len(key))
    table, total = state
    table = alpha * table + torch.outer(k, value)
    total = alpha * total + k
    return (q @ table) / (q @ total), (table, total)""",
    "found": """def found(x, rotations, top):
    seq, rounds = len(x), len(rotations)
    keys = x / x.norm(dim=1, keepdim=True)
    scores = x @ keys.T
    scores.fill_diagonal_(-torch.inf)
    right = scores.argsort(dim=1, descending=True)[:, :top]
    met = torch.zeros(seq, seq, dtype=torch.bool)
    table = torch.zeros(2, rounds)
    for r in range(rounds):
        hashed = x @ rotations[r]
        bucket = torch.cat([hashed, -hashed], dim=1).max(dim=1).indices
        together = bucket.unsqueeze(0) == bucket.unsqueeze(1)
        together.fill_diagonal_(False)
        met = met | together
        table[0, r] = met.gather(1, right).float().mean()
        table[1, r] = met.sum() / (seq * seq - seq)
    return table""",
    "judge": """def judge(claim, data):
    if claim == "square":
        lengths = sorted(data)
        long, short = lengths[-1], lengths[-1] // 2
        number = math.log2(statistics.median(data[long]) / statistics.median(data[short]))
        return number, "supported" if abs(number - 2) <= 0.2 else "refuted"
    if claim == "remembers":
        first, second = data
        number = statistics.mean(float(a > b) for a in first for b in second)
        return number, "supported" if number == 1 else "refuted" if number == 0 else "open"
    weights, values, window = data
    place = torch.arange(len(weights))
    near = weights.masked_fill(place[:, None] - place > window, 0.0)
    near = near / near.sum(dim=1, keepdim=True)
    before, after = weights @ values, near @ values
    number = ((after - before).norm(dim=1) / before.norm(dim=1)).max().item()
    return number, "refuted" if number > 0.05 else "supported\"""",
}

MISTAKES = [
    (
        "the own token counted in the window",
        {
            "first-heard": """def dilated(seq, window, dilation):
    mask = torch.zeros(seq, seq, dtype=torch.bool)
    for i in range(seq):
        for j in range(window):
            if i - j * dilation >= 0:
                mask[i, i - j * dilation] = True
    return mask


def first_heard(masks):
    n = len(masks[0])
    sources = [{i} for i in range(n)]
    first = torch.full((n, n), -1)
    first.fill_diagonal_(0)
    for number, mask in enumerate(masks):
        entered = list(sources)
        for i in range(n):
            for j in mask[i].nonzero().flatten().tolist():
                sources[i] = sources[i] | entered[j]
        for i in range(n):
            for j in sources[i]:
                if i != j and first[i, j] < 0:
                    first[i, j] = number + 1
    return first"""
        },
        "You count it among them.",
    ),
    (
        "both ways",
        {"(window": "(-window, window", "i - j * dilation >= 0": "0 <= i - j * dilation < seq"},
        "The window looks ahead.",
    ),
    (
        "no gaps",
        {"(window": "(window * dilation", "- j * dilation >= 0": ">= j", "* dilation]": "]"},
        "Those between the steps of `dilation` must not be.",
    ),
    (
        "dilation tokens in between",
        {"- j * dilation >= 0": ">= j * (dilation + 1)", "dilation]": "(dilation + 1)]"},
        "dilation 1 is a plain window",
    ),
    (
        "columns are queries",
        {", i - j * dilation": "- j * dilation, i"},
        "The window is the wrong way round",
    ),
    (
        "layers in reverse",
        {"enumerate(masks": "enumerate(masks[::-1]"},
        "The layers are taken in reverse",
    ),
    (
        "the product the wrong way round",
        {
            "first-heard": """def dilated(seq, window, dilation):
    mask = torch.zeros(seq, seq, dtype=torch.bool)
    for i in range(seq):
        for j in range(window + 1):
            if i - j * dilation >= 0:
                mask[i, i - j * dilation] = True
    return mask


def first_heard(masks):
    heard = torch.eye(len(masks[0]))
    first = torch.where(heard > 0, 0, -1)
    for number, mask in enumerate(masks):
        heard = heard + heard @ mask.float()
        first[(heard > 0) & (first < 0)] = number + 1
    return first"""
        },
        "The product is the wrong way round.",
    ),
    (
        "no residual",
        {"= list(sources)": ", sources = sources, [set() for _ in range(n)]"},
        "What a token has heard is lost",
    ),
    ("seen directly", {"entered[j]": "{j}"}, "A token also hears of it through others"),
    (
        "the first mask in all layers",
        {"enumerate(masks": "enumerate(masks[:1] * len(masks)"},
        "The first layer's mask is used in all layers.",
    ),
    ("layers from 0", {"number + 1": "number + 0"}, "The layers are counted from 0."),
    (
        "never is 0",
        {"-1": "0", "< 0": "== 0"},
        "Where a token never hears of another, -1 is expected.",
    ),
    (
        "rows that this layer has changed",
        {"entered = list(sources)": "pass", "entered[": "sources["},
        "All rows of a layer see what entered it.",
    ),
    (
        "places of the text",
        {"arange(len(seen)": "tensor(seen"},
        "The positions are those of the text.",
    ),
    (
        "the query at its place in the text",
        {"places[-1:]": "torch.tensor([t])"},
        "The query has its position in the text",
    ),
    (
        "the query behind its key",
        {
            "stream": """def stream(query, key, value, window, n_sinks):
    seq, d_key = query.shape
    outputs = torch.zeros(seq, value.shape[1])
    for t in range(seq):
        start = max(t - window, 0)
        sinks = list(range(min(n_sinks, start)))
        seen = sinks + list(range(start, t + 1))
        places = torch.arange(len(seen))
        q = turn(query[t : t + 1], places[-1:] + 1)[0]
        k = turn(key[seen], places)
        weights = (k @ q / math.sqrt(d_key)).softmax(dim=0)
        outputs[t] = weights @ value[seen]
    return outputs"""
        },
        "one position after its own key",
    ),
    ("the query at 0", {"places[-1:]": "torch.zeros(1)"}, "The query has position 0."),
    (
        "nothing turned",
        {
            """turn(query[t : t + 1], places[-1:])[0]
        k = turn(key[seen], places)""": """query[t]
        k = key[seen]"""
        },
        "Nothing is turned.",
    ),
    (
        "values turned",
        {"value[seen]": "turn(value[seen], places)"},
        "The values are turned as well.",
    ),
    (
        "one key too few",
        {
            "stream": """def stream(query, key, value, window, n_sinks):
    seq, d_key = query.shape
    outputs = torch.zeros(seq, value.shape[1])
    for t in range(seq):
        start = max(t - window + 1, 0)
        sinks = list(range(min(n_sinks, start)))
        seen = sinks + list(range(start, t + 1))
        places = torch.arange(len(seen))
        q = turn(query[t : t + 1], places[-1:])[0]
        k = turn(key[seen], places)
        weights = (k @ q / math.sqrt(d_key)).softmax(dim=0)
        outputs[t] = weights @ value[seen]
    return outputs"""
        },
        "The window is one key too narrow",
    ),
    ("no sinks", {"list(range(min(n_sinks, start)))": "[]"}, "The sinks are not seen."),
    ("sinks twice", {"start)": "t + 1)"}, "Each key counts once."),
    (
        "sinks behind the window",
        {
            "sinks + list(range(start, t + 1))": "list(range(start, t + 1)) + sinks",
            "-1:": "t - start : t - start + 1",
        },
        "The sinks come after the window.",
    ),
    ("the whole past", {"max(t - window, 0)": "0"}, "All earlier tokens are seen."),
    ("not divided", {"math.sqrt(d_key)": "1"}, "The scores are not divided by √d_key."),
    ("scaled by the window", {"d_key)": "window)"}, "The scores are divided by √window."),
    (
        "a window of 0 keeps everything",
        {
            "stream": """def stream(query, key, value, window, n_sinks):
    seq, d_key = query.shape
    outputs = []
    for t in range(seq):
        seen = [*range(min(n_sinks, t)), *list(range(n_sinks, t))[-window:], t]
        places = torch.arange(len(seen))
        k = turn(key[seen], places)
        q = turn(query[t : t + 1], places[-1:])
        weights = torch.softmax(q @ k.T / d_key**0.5, dim=-1)
        outputs.append((weights @ value[seen])[0])
    return torch.stack(outputs)"""
        },
        "With a window of 0 everything is seen",
    ),
    (
        "a window that begins before the text",
        {
            "stream": """def stream(query, key, value, window, n_sinks):
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
    return torch.stack(outputs)"""
        },
        "the window begins before it",
    ),
    (
        "a token fades by its own alpha",
        {
            "table +": "(table +",
            ", value)": ", value))",
            "total + k": "(total + k)",
            ", (": ".clamp(min=1e-9), (",
        },
        "A token fades by its own α.",
    ),
    ("the sum does not fade", {"alpha * total": "total"}, "The sum of the weights does not fade."),
    ("nothing fades", {"alpha * table": "table", "alpha * total": "total"}, "Nothing fades"),
    (
        "not divided",
        {"(q @ table) / (q @ total)": "q @ table"},
        "The output is not divided by the sum of the weights.",
    ),
    ("no features", {"features(query), features(key)": "query, key"}, "φ is missing"),
    ("features of the keys alone", {"features(query)": "query"}, "φ is used on the keys alone."),
    (
        "a moving average",
        {
            ", value)": ", value) * (1 - alpha if total.any() else 1)",
            "+ k": "+ k * (1 - alpha if total.any() else 1)",
        },
        "The new token is written with the factor 1 − α.",
    ),
    (
        "all keys kept",
        {
            "fading": """def whole(query, key, value, alpha):
    outputs, state = [], None
    for q, k, v, a in zip(query, key, value, alpha):
        output, state = step(q, k, v, a, state)
        outputs.append(output)
    return torch.stack(outputs)


def step(query, key, value, alpha, state=None):
    faded = [(alpha * w, k, v) for w, k, v in state or []]
    tokens = [*faded, (torch.tensor(1.0), features(key), value)]
    weights = torch.stack([w * (features(query) @ k) for w, k, _ in tokens])
    values = torch.stack([v for _, _, v in tokens])
    return weights @ values / weights.sum(), tokens"""
        },
        "Keep sums over the tokens, not the tokens.",
    ),
    (
        "the state changed in place",
        {
            """alpha * table + torch.outer(k, value)
    total = alpha * total + k""": """table.mul_(alpha).add_(torch.outer(k, value))
    total = total.mul_(alpha).add_(k)"""
        },
        "Two steps from the same state differ",
    ),
    (
        "a product divided by a product",
        {
            """outputs, state = [], None
    for q, k, v, a in zip(query, key, value, alpha):
        output, state = step(q, k, v, a, state)
        outputs.append(output)
    return torch.stack(outputs""": """product = alpha.cumprod(dim=0)
    weights = features(query) @ features(key).T * (product[:, None] / product)
    weights = weights.tril()
    return weights @ value / weights.sum(dim=1, keepdim=True"""
        },
        "fails where an α is 0",
    ),
    (
        "the future",
        {
            "outputs, state = [], None": """seq = len(query)
    kept = torch.ones(seq, seq)""",
            "q, k, v, a in zip(query, key, value, alpha": "i in range(seq",
            """output, state = step(q, k, v, a, state)
        outputs.append(output""": """for j in range(i):
            kept[i, j] = alpha[j + 1 : i + 1].prod(""",
            """)
    return torch.stack(outputs""": """)
    weights = features(query) @ features(key).T * kept
    return weights @ value / weights.sum(dim=1, keepdim=True""",
        },
        "A query sees later tokens.",
    ),
    (
        "the newest alpha for all",
        {
            """outputs, state = [], None
    for q, k, v, a in zip(query, key, value, alpha):
        output, state = step(q, k, v, a, state)
        outputs.append(output)
    return torch.stack(outputs""": """place = torch.arange(len(query))
    apart = place[:, None] - place
    kept = torch.where(apart >= 0, alpha[:, None] ** apart.clamp(min=0), 0.0)
    weights = features(query) @ features(key).T * kept
    return weights @ value / weights.sum(dim=1, keepdim=True"""
        },
        "Everything earlier fades by the newest α.",
    ),
    (
        "itself among the right keys",
        {
            "scores.fill_diagonal_(-torch.inf)": "pass",
            "together.fill_diagonal_(False)": "pass",
            "met.sum(": "(met.sum() - seq",
        },
        "A query's own token is among the right keys.",
    ),
    (
        "itself among those looked at",
        {"together.fill_diagonal_(False)": "pass"},
        "A query's own token is among those that are looked at.",
    ),
    ("of all tokens", {"(seq * seq - seq)": "seq**2"}, "The share looked at is of all tokens"),
    ("each round alone", {"= met |": "="}, "Each column is one round alone."),
    (
        "met in every round",
        {"met |": "together if r == 0 else met &"},
        "A key must be met in every round here.",
    ),
    (
        "half of the buckets",
        {"torch.cat([hashed, -hashed], dim=1).max(dim=1).indices": "hashed.argmax(dim=1)"},
        "Half of the buckets are missing",
    ),
    (
        "opposites together",
        {"torch.cat([hashed, -hashed], dim=1).max(dim=1).indices": "hashed.abs().argmax(dim=1)"},
        "A row and its opposite fall into one bucket",
    ),
    (
        "keys as long as they are",
        {"x / x.norm(dim=1, keepdim=True)": "x"},
        "A key is scaled to length 1 first",
    ),
    (
        "any key will do",
        {
            """together
        table[0, r] = met.gather(1, right""": """met | together
        table[0, r] = met.gather(1, right).any(dim=1"""
        },
        "A query counts as soon as one of its right keys is found.",
    ),
    (
        "how many of those looked at are right",
        {"float().mean": "sum() / met.sum"},
        "This is how many of the keys looked at are right.",
    ),
    ("the best key alone", {"top]": "1]"}, "Only the best key counts."),
    (
        "shares added up",
        {"= met |": "=", "return table": "return table.cumsum(dim=1)"},
        "The shares of the rounds are added up.",
    ),
    (
        "only earlier tokens are looked at",
        {
            "found": """def found(x, rotations, top):
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
    return torch.stack(shares, dim=1)"""
        },
        "Only earlier tokens are looked at.",
    ),
    (
        "a query's own token takes one of the right places",
        {
            "found": """def found(x, rotations, top):
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
    return torch.stack(shares, dim=1)"""
        },
        "where it takes the place of another",
    ),
    (
        "by the means",
        {"median(data[long]) / statistics.median": "mean(data[long]) / statistics.mean"},
        "This uses the means.",
    ),
    (
        "fitted to all lengths",
        {
            "math.log2(statistics.median(data[long]) / statistics.median(data[short]))": "statistics.linear_regression([math.log(n) for n in lengths], [math.log(statistics.median(data[n])) for n in lengths]).slope"
        },
        "This is fitted to all lengths.",
    ),
    (
        "from the shortest to the longest",
        {
            """-1] // 2
        number = math.log2(statistics.median(data[long]) / statistics.median(data[short])""": """0]
        number = math.log(statistics.median(data[long]) / statistics.median(data[short]), long / short"""
        },
        "This is between the shortest and the longest text.",
    ),
    (
        "the last two of the dict",
        {"lengths[-1], lengths[-1] // 2": "list(data)[:-3:-1]"},
        "The lengths are not in order.",
    ),
    ("base e", {"log2": "log"}, "This is the natural logarithm."),
    (
        "never supported",
        {'"supported" if abs(number - 2) <= 0.2 else "refuted"': '"open"'},
        "The criterion leaves nothing open",
    ),
    (
        "run by run",
        {"in first for b in second": ", b in zip(first, second)"},
        "You pair run 0 with run 0",
    ),
    (
        "the difference of the means",
        {
            "float(a > b) for a in first for b in": "first) - statistics.mean(",
            '== 1 else "refuted" if number == 0 else "open"': '> 0 else "refuted"',
        },
        "This is the difference of the means.",
    ),
    (
        "more than half of the pairs",
        {'== 1 else "refuted" if number == 0 else "open"': '> 0.5 else "refuted"'},
        "The runs overlap",
    ),
    (
        "the weight behind the window",
        {
            "(after - before).norm(dim=1) / before.norm(dim=1)": "weights - weights.tril().triu(-window)).sum(dim=1"
        },
        "This is the weight outside the window.",
    ),
    (
        "not shared again",
        {"near = near / near.sum(dim=1, keepdim=True)": "pass"},
        "The weights that are left do not sum to 1 again.",
    ),
    (
        "the mean over the queries",
        {
            "judge": """def judge(claim, data):
    if claim == "square":
        lengths = sorted(data)
        long, short = lengths[-1], lengths[-1] // 2
        number = math.log2(statistics.median(data[long]) / statistics.median(data[short]))
        return number, "supported" if abs(number - 2) <= 0.2 else "refuted"
    if claim == "remembers":
        first, second = data
        number = statistics.mean(float(a > b) for a in first for b in second)
        return number, "supported" if number == 1 else "refuted" if number == 0 else "open"
    weights, values, window = data
    place = torch.arange(len(weights))
    near = weights.masked_fill(place[:, None] - place > window, 0.0)
    near = near / near.sum(dim=1, keepdim=True)
    before, after = weights @ values, near @ values
    number = ((after - before).norm(dim=1) / before.norm(dim=1)).mean().item()
    return number, "refuted" if number > 0.05 else "supported\""""
        },
        "This is the mean over the queries.",
    ),
    (
        "a length",
        {"(after - before).norm(dim=1) / before.norm(dim=1)": "after - before).norm(dim=1"},
        "This is a length, not a share",
    ),
    ("a narrower window", {"place >": "place >="}, "The window is one key too narrow"),
    (
        "the weight decides",
        {"number > 0.05": "(weights.tril(-window - 1).sum(dim=1) > 0.05).any()"},
        "how far the output moves decides",
    ),
    ("a tie is a win", {"> b": ">= b"}, "A pair with equal shares is counted."),
    (
        "one norm over all queries",
        {"dim=1) / before.norm(dim=1)).max(": ") / before.norm()"},
        "This is one length for all queries together",
    ),
    (
        "the two longest, whatever their lengths",
        {"1] // 2": "2]"},
        "This is between the two longest texts",
    ),
]

RIGHT = [
    (
        "a sum of diagonals, and each source followed",
        {
            "first-heard": """def dilated(seq, window, dilation):
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
    return torch.stack(columns, dim=1)"""
        },
    ),
    (
        "a list that drops what is no longer seen",
        {
            "stream": """def stream(query, key, value, window, n_sinks):
    cache, outputs = [], []
    for q, k, v in zip(query.split(1), key.split(1), value.split(1)):
        cache.append((k, v))
        if len(cache) > n_sinks + window + 1:
            del cache[n_sinks]
        keys, values = (torch.cat(rows) for rows in zip(*cache))
        keys = turn(keys, torch.arange(len(cache)))
        q = turn(q, torch.tensor([len(cache) - 1]))
        outputs.append(F.scaled_dot_product_attention(q[None], keys[None], values[None])[0])
    return torch.cat(outputs)"""
        },
    ),
    (
        "places from a mask",
        {
            "stream": """def stream(query, key, value, window, n_sinks):
    from attention import sink_mask

    mask = sink_mask(len(query), window, n_sinks)
    rows = []
    for t, seen in enumerate(mask):
        places = (seen.cumsum(dim=0) - 1).clamp(min=0)
        scores = turn(query[[t]], places[[t]]) @ turn(key, places).T / key.shape[1] ** 0.5
        rows.append(scores.masked_fill(~seen, -torch.inf).softmax(dim=-1) @ value)
    return torch.cat(rows)"""
        },
    ),
    (
        "values with a 1, in one table",
        {
            "fading": """def whole(query, key, value, alpha):
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
    return torch.stack(above) / below, state"""
        },
    ),
    (
        "with sets",
        {
            "found": """def found(x, rotations, top):
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
    return torch.tensor(rows)"""
        },
    ),
    (
        "with torch",
        {
            "judge": """def square(data):
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
    return {"square": square, "remembers": remembers, "window": window}[claim](data)"""
        },
    ),
]
