"""Answers to 7-training-and-ablation: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "judge": """def judge(claim, head, question, looks, right, without):
    if claim == "looks":
        return "shown" if looks[head, question] > 0.5 else "refuted"
    if claim == "every":
        return "open" if looks[:, question].max() > 0.5 else "refuted"
    if claim == "sure":
        return "open"
    change = without[head, question] - right[question]
    if claim == "needs":
        return "shown" if change <= -0.1 else "refuted"
    return "refuted" if abs(change) >= 0.1 else "open\"""",
    "diagnose": """def diagnose(train):
    torch.manual_seed(1)
    batches = [(torch.randn(6, 5), torch.randint(4, (6,))) for _ in range(4)]
    new = (torch.randn(40, 5), torch.randint(4, (40,)))
    start, rate = nn.Linear(5, 4), 0.5

    def run(sign=-1, clear=True, twice=False):
        model = copy.deepcopy(start)
        for x, answers in batches:
            if clear:
                model.zero_grad()
            logits = model(x).softmax(dim=-1) if twice else model(x)
            F.cross_entropy(logits, answers).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter += sign * rate * parameter.grad
        return model.weight.detach()

    theirs = copy.deepcopy(start)
    returned = train(theirs, batches, new, rate)
    weight = theirs.weight.detach()
    close = lambda a, b: torch.allclose(a, b, atol=1e-4)
    if close(weight, run()):
        share = (theirs(new[0]).argmax(dim=-1) == new[1]).float().mean().item()
        return "none" if abs(returned - share) < 1e-4 else "old sentences"
    for name, found in (
        ("piled up", run(clear=False)),
        ("softmax twice", run(twice=True)),
        ("uphill", run(sign=1)),
    ):
        if close(weight, found):
            return name
    return "one batch\"""",
}

MISTAKES = [
    (
        "padding in the mean of the loss",
        {
            """right = shares.gather(-1, answers[..., None])[..., 0]  # (batch, seq)
    return -right[answers != 0].log().mean(""": "return F.nll_loss(shares.log().flatten(0, 1), answers.flatten()"
        },
        "Padding is in the mean",
    ),
    (
        "a softmax of the shares",
        {
            """right = shares.gather(-1, answers[..., None])[..., 0]  # (batch, seq)
    return -right[answers != 0].log().mean(""": "return F.cross_entropy(shares.flatten(0, 1), answers.flatten(), ignore_index=0"
        },
        "`F.cross_entropy` wants logits.",
    ),
    (
        "the mean before the logarithm",
        {"log().mean": "mean().log"},
        "The shares are averaged first",
    ),
    (
        "each sentence the same say",
        {
            "return -right[answers != 0].log(": """counts = answers != 0
    return (-(right.log() * counts).sum(dim=1) / counts.sum(dim=1)"""
        },
        "Each sentence has the same say",
    ),
    ("the minus forgotten", {"-right": "right"}, "the logarithm of a share is negative"),
    (
        "how the loss grows with a share",
        {
            "counts = (answers != 0).float": "shares = shares.clone().requires_grad_",
            "one_hot = F.one_hot(answers, shares.shape[-1]": "loss(shares, answers).backward(",
            "(shares - one_hot) * (counts / counts.sum())[..., None]": "shares.grad",
        },
        "This is how the loss grows with each share.",
    ),
    (
        "the gradient of the sum",
        {
            """counts = (answers != 0).float()  # (batch, seq)
    one_hot =""": "found = shares -",
            "(shares - one_hot) * (counts / counts.sum()": "found * (answers != 0",
        },
        "this is the gradient of the sum",
    ),
    (
        "padding has a gradient",
        {
            """counts = (answers != 0).float()  # (batch, seq)
    one_hot = F.one_hot(answers, shares.shape[-1])  # (batch, seq, words)
    return (shares - one_hot) * (counts / counts.sum())[..., None]""": "return (shares - F.one_hot(answers, shares.shape[-1])) / (answers != 0).sum()"
        },
        "Padding gets a gradient.",
    ),
    (
        "the right word alone",
        {"(shares - one_hot": "one_hot * (shares - 1"},
        "Only the right word's logit has a gradient.",
    ),
    (
        "the gradient with its sign turned",
        {"shares - one_hot": "one_hot - shares"},
        "A larger logit of the right word makes the loss smaller",
    ),
    (
        "old gradients",
        {
            """model.zero_grad()
    rows""": "rows"
        },
        "Gradients of an earlier batch are in the step.",
    ),
    (
        "all parts alike",
        {
            "rows = sum(len(x) for x, _ in parts": "model.zero_grad(",
            "* len(x) / rows": "/ len(parts)",
        },
        "All parts count alike.",
    ),
    (
        "a step after each part",
        {
            "step": """def step(model, parts, loss_of, rate):
    rows = sum(len(x) for x, _ in parts)
    whole = 0.0
    for x, answers in parts:
        model.zero_grad()
        loss = loss_of(model, x, answers)
        loss.backward()
        whole += loss.item() * len(x) / rows
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter -= rate * parameter.grad
    return whole"""
        },
        "The parameters move after each part",
    ),
    (
        "cleared before each part",
        {
            """model.zero_grad()
    rows""": "rows",
            "share =": """model.zero_grad()
        share =""",
        },
        "Only the last part counts.",
    ),
    (
        "everything at once",
        {
            "step": """def step(model, parts, loss_of, rate):
    model.zero_grad()
    x, answers = (torch.cat(some) for some in zip(*parts))
    loss = loss_of(model, x, answers)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= rate * parameter.grad
    return loss"""
        },
        "There is memory for one part.",
    ),
    (
        "a new name for the same parameter",
        {
            """with torch.no_grad():
        for""": "for",
            """-= rate * parameter.grad
    return""": """= parameter - rate * parameter.grad
    return""",
        },
        "No parameter has moved.",
    ),
    (
        "torch writes it down",
        {
            """with torch.no_grad():
        for parameter in model.parameters()""": """for parameter in model.parameters():
        if parameter.grad is not None"""
        },
        "Move them in `torch.no_grad()`.",
    ),
    (
        "no gradient is None",
        {
            "step": """def step(model, parts, loss_of, rate):
    model.zero_grad()
    rows = sum(len(x) for x, _ in parts)
    for x, answers in parts:
        (loss_of(model, x, answers) * len(x) / rows).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= rate * parameter.grad"""
        },
        "has the gradient None",
    ),
    ("uphill", {"-= rate": "+= rate"}, "It goes uphill"),
    (
        "the loss of the last part",
        {
            """whole = 0.0
    for""": "for",
            "share =": "loss =",
            """) * len(x) / rows
        share.backward()  # adds to the gradients of the parts before
        whole += share.item""": """)
        (loss * len(x) / rows).backward""",
            "return whole": "return loss.item()",
        },
        "it is the loss of the last part alone",
    ),
    (
        "a frozen parameter moves",
        {
            "step": """def step(model, parts, loss_of, rate):
    for p in model.parameters():
        if p.requires_grad:
            p.grad = None
    rows = sum(len(x) for x, _ in parts)
    mean = 0.0
    for x, answers in parts:
        share = loss_of(model, x, answers) * (len(x) / rows)
        share.backward()
        mean += share.item()
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p -= rate * p.grad
    return mean"""
        },
        "frozen.weight is frozen, but it has moved",
    ),
    (
        "a momentum",
        {
            "step": """VELOCITY = {}


def step(model, parts, loss_of, rate):
    for p in model.parameters():
        p.grad = None
    rows = sum(len(x) for x, _ in parts)
    mean = 0.0
    for x, answers in parts:
        share = loss_of(model, x, answers) * (len(x) / rows)
        share.backward()
        mean += share.item()
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad and p.grad is not None:
                VELOCITY[p] = 0.9 * VELOCITY.get(p, 0.0) + p.grad
                p -= rate * VELOCITY[p]
    return mean"""
        },
        "Plain gradient descent has no memory.",
    ),
    ("what is left", {"= before -": "="}, "This is what is left."),
    ("heads stay off", {"found.clone()": "found"}, "Start from all heads each time"),
    (
        "the mean over the heads",
        {"[:, head].mean(dim=0": ".mean(dim=1"},
        "The mean is over the heads",
    ),
    (
        "the mean over the columns",
        {"=0": "=-1, keepdim=True"},
        "What the head says about this verb is still in it.",
    ),
    (
        "one number for all columns",
        {"dim=0)": ")"},
        "Each of the head's d_key columns has a mean of its own",
    ),
    (
        "one head alone",
        {
            "found[:, head].mean(dim=0": "torch.tensor(0.0",
            "head] =": "torch.arange(found.shape[1]) != head] =",
        },
        "this is what one head can do alone",
    ),
    (
        "the gate left at 0",
        {
            "costs": """def costs(model, batch):
    from attention.trained.ablation import switch_off

    found = found_at_verb(model, batch)
    before = share_right(model, batch, found)
    lost = torch.zeros(found.shape[1], 2, 2)
    for head in range(found.shape[1]):
        switch_off(model.attention, head)
        answer = model(batch.token_ids, batch.verb)
        lost[head, 0, 0] = before[0] - (answer.who.argmax(-1) == batch.who).float().mean()
        lost[head, 0, 1] = before[1] - (answer.whom.argmax(-1) == batch.whom).float().mean()
        changed = found.clone()
        changed[:, head] = found[:, head].mean(dim=0)
        lost[head, 1] = before - share_right(model, batch, changed)
    return lost"""
        },
        "The model must come back as it went in",
    ),
    (
        "divided",
        {
            "before - share_right(model, batch, changed)": "1 - share_right(model, batch, changed) / before"
        },
        "Subtract, and do not divide.",
    ),
    (
        "harm costs nothing",
        {
            "before - share_right(model, batch, changed)": "(before - share_right(model, batch, changed)).clamp(min=0)"
        },
        "If more is right without a head, you say that it costs nothing.",
    ),
    (
        "needed by the map",
        {"change <= -0.1": "looks[head, question] > 0.5"},
        "You judge by where the head looks.",
    ),
    (
        "needed and looked at",
        {"-0.1": "-0.1 and looks[head, question] > 0.5"},
        "A model can need a head that looks elsewhere",
    ),
    (
        "better is needed, too",
        {"change <= -": "abs(change) >="},
        "A model that is better without a head is not worse without it",
    ),
    ("idle where nothing changes", {'else "open"': 'else "shown"'}, "nobody has switched both off"),
    ("harm is no contribution", {"abs(change) >=": "change <= -"}, "it does harm"),
    (
        "every model from one",
        {'"open" if': '"shown" if'},
        "One model cannot show what holds for every",
    ),
    (
        "one model refutes nothing",
        {'"open" if looks[:, question].max() > 0.5 else "refuted"': '"open"'},
        "One model without such a head is enough",
    ),
    (
        "a weight is a share",
        {
            """"open"
    change""": """"shown" if looks[head, question] > 0.5 else "refuted"
    change"""
        },
        "A weight says how an average is mixed.",
    ),
    (
        "nothing says it, so it is false",
        {
            """"open"
    change""": """"refuted"
    change"""
        },
        "nothing can refute the claim either",
    ),
    (
        "another word for a verdict",
        {
            """"open"
    change""": """"unknown"
    change"""
        },
        '"shown", "refuted" or "open" is expected',
    ),
    (
        "a head for the other question",
        {"looks[:, question].max() > 0.5": "(looks > 0.5).any()"},
        "You accept a head that looks at the other question.",
    ),
    ("a single step", {") for _ in range(4)": ")"}, "run more than one step"),
    ("the same batch three times", {"for _ in range(4)]": "] * 3"}, "batches that are alike"),
    (
        "no tolerance",
        {"lambda a, b: torch.allclose(a, b, atol=1e-4)": "torch.equal"},
        "compare with a tolerance",
    ),
    (
        "what it returns is not looked at",
        {"abs(returned - share) < 1e-4": "True"},
        "What the loop returns is wrong",
    ),
    (
        "the old sentences are the new ones",
        {"new,": "batches[-1],", "abs(returned - share) < 1e-4": "True"},
        "differ from the old sentences'",
    ),
    (
        "whether the loss falls",
        {
            "diagnose": """def diagnose(train):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    x, answers = torch.randn(12, 4), torch.randint(3, (12,))
    before = F.cross_entropy(model(x), answers)
    train(model, [(x, answers)] * 5, (x, answers), 0.1)
    return "none" if F.cross_entropy(model(x), answers) < before else "uphill\""""
        },
        "You call a loop",
    ),
    (
        "the gradients that are left in the parameters",
        {
            "diagnose": """def diagnose(train):
    torch.manual_seed(0)
    batches = [(torch.randn(6, 4), torch.randint(3, (6,))) for _ in range(3)]
    model = nn.Linear(4, 3)
    train(model, batches, batches[0], 1e-9)
    total = sum(
        torch.autograd.grad(F.cross_entropy(model(x), answers), model.weight)[0]
        for x, answers in batches
    )
    return "piled up" if torch.allclose(model.weight.grad, total, atol=1e-4) else "none\""""
        },
        "A loop need not leave anything in `.grad`.",
    ),
    (
        "looks inside of the loop",
        {
            "diagnose": """NAMES = ("piled up", "softmax twice", "uphill", "one batch", "old sentences")


def diagnose(train):
    seen, todo = [], [train]
    while todo and len(seen) < 100:
        thing = todo.pop()
        if isinstance(thing, str) and thing in NAMES:
            return thing
        if any(thing is other for other in seen):
            continue
        seen.append(thing)
        todo += list(getattr(thing, "args", ()))
        todo += list((getattr(thing, "keywords", None) or {}).values())
        todo += list(getattr(thing, "__defaults__", None) or ())
        todo += [cell.cell_contents for cell in (getattr(thing, "__closure__", None) or ())]
        if hasattr(thing, "func"):
            todo.append(thing.func)
    return "none\""""
        },
        'You call a loop "none"',
    ),
]

RIGHT = [
    (
        "autograd, from logarithms as logits",
        {
            "log-loss": """def of(logits, answers):
    return F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=0)


def loss(shares, answers):
    return of(shares.log(), answers).item()


def gradient(shares, answers):
    logits = shares.log().requires_grad_()  # a softmax of these gives the shares back
    return torch.autograd.grad(of(logits, answers), logits)[0]"""
        },
    ),
    (
        "one place after another",
        {
            "log-loss": """def loss(shares, answers):
    places = (answers != 0).nonzero().tolist()
    total = 0.0
    for b, s in places:
        total -= shares[b, s, answers[b, s]].log()
    return total / len(places)


def gradient(shares, answers):
    places = (answers != 0).nonzero().tolist()
    found = torch.zeros_like(shares)
    for b, s in places:
        found[b, s] = shares[b, s] / len(places)
        found[b, s, answers[b, s]] -= 1 / len(places)
    return found"""
        },
    ),
    (
        "torch's optimiser",
        {
            "step": """def step(model, parts, loss_of, rate):
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate)
    optimiser.zero_grad()
    rows = sum(len(x) for x, _ in parts)
    losses = []
    for x, answers in parts:
        losses.append(loss_of(model, x, answers) * len(x))
        (losses[-1] / rows).backward()
    optimiser.step()
    return sum(losses) / rows"""
        },
    ),
    (
        "sums by autograd.grad",
        {
            "step": """def step(model, parts, loss_of, rate):
    parameters = [p for p in model.parameters() if p.requires_grad]
    total = [torch.zeros_like(p) for p in parameters]
    rows, whole = 0, 0.0
    for x, answers in parts:
        loss = loss_of(model, x, answers)
        for sum_, found in zip(total, torch.autograd.grad(loss, parameters, allow_unused=True)):
            if found is not None:
                sum_ += len(x) * found
        rows, whole = rows + len(x), whole + len(x) * loss.item()
    for parameter, sum_ in zip(parameters, total):
        parameter.data.sub_(rate * sum_ / rows)
    return whole / rows"""
        },
    ),
    (
        "by the gate, and the mean by a stack",
        {
            "costs": """def costs(model, batch):
    from attention.trained.who_and_whom import accuracy, without_head

    found = found_at_verb(model, batch)
    both = accuracy(model, batch)[:2]
    rows = []
    for head in range(found.shape[1]):
        gone = accuracy(without_head(model, head), batch)[:2]
        heads = list(found.unbind(dim=1))
        heads[head] = heads[head].mean(dim=0).expand_as(heads[head])
        mean = share_right(model, batch, torch.stack(heads, dim=1)).tolist()
        rows.append([[a - b for a, b in zip(both, ways)] for ways in (gone, mean)])
    return torch.tensor(rows)"""
        },
    ),
    (
        "with a mask over the heads",
        {
            "costs": """def costs(model, batch):
    found = found_at_verb(model, batch)
    before = share_right(model, batch, found)
    ways = (torch.zeros_like(found), found.mean(dim=0, keepdim=True).expand_as(found))
    lost = []
    for head in torch.eye(found.shape[1], dtype=torch.bool):
        changed = [torch.where(head[:, None], instead, found) for instead in ways]
        lost.append(torch.stack([before - share_right(model, batch, x) for x in changed]))
    return torch.stack(lost)"""
        },
    ),
    (
        "a table of rules",
        {
            "judge": """def judge(claim, head, question, looks, right, without):
    looking = [row[question].item() > 0.5 for row in looks]
    change = 0.0
    if head is not None:
        change = round((without[head, question] - right[question]).item(), 6)
    return {
        "looks": lambda: ("refuted", "shown")[looking[head]],
        "needs": lambda: ("refuted", "shown")[change <= -0.1],
        "idle": lambda: ("open", "refuted")[abs(change) >= 0.1],
        "every": lambda: ("refuted", "open")[any(looking)],
        "sure": lambda: "open",
    }[claim]()"""
        },
    ),
    (
        "one experiment for each mistake",
        {
            "diagnose": """def diagnose(train):
    torch.manual_seed(3)
    a, b, c = ((torch.randn(9, 6), torch.randint(5, (9,))) for _ in range(3))
    start = nn.Linear(6, 5)

    def end(batches, rate=0.2):
        model = copy.deepcopy(start)
        train(model, batches, c, rate)
        return model.weight.detach()

    def gradient(weight, batch, twice=False):
        logits = batch[0] @ weight.T + start.bias.detach()
        return logits.softmax(dim=-1) if twice else logits

    weight = start.weight.detach().clone().requires_grad_()
    slope = torch.autograd.grad(F.cross_entropy(gradient(weight, a), a[1]), weight)[0]
    one = end([a]) - start.weight.detach()
    if torch.allclose(one, 0.2 * slope, atol=1e-5):
        return "uphill"
    if not torch.allclose(one, -0.2 * slope, atol=1e-5):
        return "softmax twice"
    if torch.allclose(end([a, b]), end([a, c])) or torch.allclose(end([a, c]), end([b, c])):
        return "one batch"
    model = copy.deepcopy(start)
    for batch in (a, b):  # two calls, after each of which the gradients are cleared
        train(model, [batch], c, 0.2)
        model.zero_grad()
    if not torch.allclose(end([a, b]), model.weight, atol=1e-5):
        return "piled up"
    model = copy.deepcopy(start)
    train(model, [a, b], c, 0.2)
    nowhere = (c[0], (model(c[0]).argmax(dim=-1) + 1) % 5)
    old = [(x, start(x).argmax(dim=-1)) for x, _ in (a, b)]  # what it says already
    model = copy.deepcopy(start)
    model_answers = train(model, old, (c[0], start(c[0]).argmax(dim=-1)), 1e-6)
    start_again = copy.deepcopy(start)
    none_right = train(start_again, old, (c[0], (start(c[0]).argmax(dim=-1) + 1) % 5), 1e-6)
    return "none" if model_answers == 1.0 and none_right == 0.0 else "old sentences\""""
        },
    ),
]
