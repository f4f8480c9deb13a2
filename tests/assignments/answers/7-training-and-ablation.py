"""Answers to 7-training-and-ablation: mistakes that students make, and other right answers."""

from tests.assignments.submissions import Mistake, Right

LOSS = """def loss(shares, answers):
    right = shares.gather(-1, answers[..., None])[..., 0]
    return -right[answers != 0].log().mean()


"""

GRADIENT = """

def gradient(shares, answers):
    counts = (answers != 0).float()
    one_hot = F.one_hot(answers, shares.shape[-1])
    return (shares - one_hot) * (counts / counts.sum())[..., None]
"""

MOVE = """    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= rate * parameter.grad
"""

COSTS = """def costs(model, batch):
    found = found_at_verb(model, batch)
    before = share_right(model, batch, found)
    lost = torch.zeros(found.shape[1], 2, 2)
    for head in range(found.shape[1]):
        for way, instead in enumerate((torch.tensor(0.0), {mean})):
            changed = found{copy}
            changed[:, {where}] = instead
            lost[head, way] = {lost}
    return lost
"""


def costs(mean="found[:, head].mean(dim=0)", copy=".clone()", where="head", lost=""):
    """The reference with one thing changed."""
    lost = lost or "before - share_right(model, batch, changed)"
    return COSTS.format(mean=mean, copy=copy, where=where, lost=lost)


JUDGE = """def judge(claim, head, question, looks, right, without):
    if claim == "looks":
        return "shown" if looks[head, question] > 0.5 else "refuted"
    if claim == "every":
        return {every}
    if claim == "sure":
        return {sure}
    change = without[head, question] - right[question]
    if claim == "needs":
        return {needs}
    return {idle}
"""


def judge(**changed):
    """The reference with one claim judged otherwise."""
    rules = {
        "every": '"open" if looks[:, question].max() > 0.5 else "refuted"',
        "sure": '"open"',
        "needs": '"shown" if change <= -0.1 else "refuted"',
        "idle": '"refuted" if abs(change) >= 0.1 else "open"',
    }
    return JUDGE.format(**rules | changed)


DIAGNOSE = """def diagnose(train):
    torch.manual_seed(1)
    batches = {batches}
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
    returned = train(theirs, batches, {new}, rate)
    weight = theirs.weight.detach()
    close = {close}
    if close(weight, run()):
        share = (theirs(new[0]).argmax(dim=-1) == new[1]).float().mean().item()
        return "none" if {honest} else "old sentences"
    for name, found in (
        ("piled up", run(clear=False)),
        ("softmax twice", run(twice=True)),
        ("uphill", run(sign=1)),
    ):
        if close(weight, found):
            return name
    return "one batch"
"""


def diagnose(**changed):
    """A right answer with one thing changed."""
    parts = {
        "batches": "[(torch.randn(6, 5), torch.randint(4, (6,))) for _ in range(4)]",
        "new": "new",
        "close": "lambda a, b: torch.allclose(a, b, atol=1e-4)",
        "honest": "abs(returned - share) < 1e-4",
    }
    return DIAGNOSE.format(**parts | changed)


MISTAKES = [
    Mistake(
        "padding in the mean of the loss",
        cell="log-loss",
        code="""def loss(shares, answers):
    return F.nll_loss(shares.log().flatten(0, 1), answers.flatten())
"""
        + GRADIENT,
        says="Padding is in the mean",
    ),
    Mistake(
        "a softmax of the shares",
        cell="log-loss",
        code="""def loss(shares, answers):
    return F.cross_entropy(shares.flatten(0, 1), answers.flatten(), ignore_index=0)
"""
        + GRADIENT,
        says="`F.cross_entropy` wants logits.",
    ),
    Mistake(
        "the mean before the logarithm",
        cell="log-loss",
        code="""def loss(shares, answers):
    right = shares.gather(-1, answers[..., None])[..., 0]
    return -right[answers != 0].mean().log()
"""
        + GRADIENT,
        says="The shares are averaged first",
    ),
    Mistake(
        "each sentence the same say",
        cell="log-loss",
        code="""def loss(shares, answers):
    right = shares.gather(-1, answers[..., None])[..., 0]
    counts = answers != 0
    return (-(right.log() * counts).sum(dim=1) / counts.sum(dim=1)).mean()
"""
        + GRADIENT,
        says="Each sentence has the same say",
    ),
    Mistake(
        "the minus forgotten",
        cell="log-loss",
        code="""def loss(shares, answers):
    right = shares.gather(-1, answers[..., None])[..., 0]
    return right[answers != 0].log().mean()
"""
        + GRADIENT,
        says="the logarithm of a share is negative",
    ),
    Mistake(
        "how the loss grows with a share",
        cell="log-loss",
        code=LOSS
        + """def gradient(shares, answers):
    shares = shares.clone().requires_grad_()
    loss(shares, answers).backward()
    return shares.grad
""",
        says="This is how the loss grows with each share.",
    ),
    Mistake(
        "the gradient of the sum",
        cell="log-loss",
        code=LOSS
        + """def gradient(shares, answers):
    found = shares - F.one_hot(answers, shares.shape[-1])
    return found * (answers != 0)[..., None]
""",
        says="this is the gradient of the sum",
    ),
    Mistake(
        "padding has a gradient",
        cell="log-loss",
        code=LOSS
        + """def gradient(shares, answers):
    return (shares - F.one_hot(answers, shares.shape[-1])) / (answers != 0).sum()
""",
        says="Padding gets a gradient.",
    ),
    Mistake(
        "the right word alone",
        cell="log-loss",
        code=LOSS
        + """def gradient(shares, answers):
    counts = (answers != 0).float()
    one_hot = F.one_hot(answers, shares.shape[-1])
    return one_hot * (shares - 1) * (counts / counts.sum())[..., None]
""",
        says="Only the right word's logit has a gradient.",
    ),
    Mistake(
        "the gradient with its sign turned",
        cell="log-loss",
        code=LOSS
        + """def gradient(shares, answers):
    counts = (answers != 0).float()
    one_hot = F.one_hot(answers, shares.shape[-1])
    return (one_hot - shares) * (counts / counts.sum())[..., None]
""",
        says="A larger logit of the right word makes the loss smaller",
    ),
    Mistake(
        "old gradients",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    rows = sum(len(x) for x, _ in parts)
    whole = 0.0
    for x, answers in parts:
        share = loss_of(model, x, answers) * len(x) / rows
        share.backward()
        whole += share.item()
"""
        + MOVE
        + "    return whole\n",
        says="Gradients of an earlier batch are in it.",
    ),
    Mistake(
        "all parts alike",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    model.zero_grad()
    whole = 0.0
    for x, answers in parts:
        share = loss_of(model, x, answers) / len(parts)
        share.backward()
        whole += share.item()
"""
        + MOVE
        + "    return whole\n",
        says="All parts count alike.",
    ),
    Mistake(
        "a step after each part",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
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
    return whole
""",
        says="The parameters move after each part",
    ),
    Mistake(
        "cleared before each part",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    rows = sum(len(x) for x, _ in parts)
    whole = 0.0
    for x, answers in parts:
        model.zero_grad()
        share = loss_of(model, x, answers) * len(x) / rows
        share.backward()
        whole += share.item()
"""
        + MOVE
        + "    return whole\n",
        says="Only the last part counts.",
    ),
    Mistake(
        "everything at once",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    model.zero_grad()
    x, answers = (torch.cat(some) for some in zip(*parts))
    loss = loss_of(model, x, answers)
    loss.backward()
"""
        + MOVE
        + "    return loss\n",
        says="There is memory for one part.",
    ),
    Mistake(
        "a new name for the same parameter",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    model.zero_grad()
    rows = sum(len(x) for x, _ in parts)
    whole = 0.0
    for x, answers in parts:
        share = loss_of(model, x, answers) * len(x) / rows
        share.backward()
        whole += share.item()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter = parameter - rate * parameter.grad
    return whole
""",
        says="No parameter has moved.",
    ),
    Mistake(
        "torch writes it down",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    model.zero_grad()
    rows = sum(len(x) for x, _ in parts)
    for x, answers in parts:
        (loss_of(model, x, answers) * len(x) / rows).backward()
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter -= rate * parameter.grad
""",
        says="Move them in `torch.no_grad()`.",
    ),
    Mistake(
        "no gradient is None",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    model.zero_grad()
    rows = sum(len(x) for x, _ in parts)
    for x, answers in parts:
        (loss_of(model, x, answers) * len(x) / rows).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= rate * parameter.grad
""",
        says="has the gradient None",
    ),
    Mistake(
        "uphill",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    model.zero_grad()
    rows = sum(len(x) for x, _ in parts)
    whole = 0.0
    for x, answers in parts:
        share = loss_of(model, x, answers) * len(x) / rows
        share.backward()
        whole += share.item()
"""
        + MOVE.replace("-=", "+=")
        + "    return whole\n",
        says="It goes uphill",
    ),
    Mistake(
        "the loss of the last part",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    model.zero_grad()
    rows = sum(len(x) for x, _ in parts)
    for x, answers in parts:
        loss = loss_of(model, x, answers)
        (loss * len(x) / rows).backward()
"""
        + MOVE
        + "    return loss.item()\n",
        says="it is the loss of the last part alone",
    ),
    Mistake(
        "a frozen parameter moves",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
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
    return mean
""",
        says="frozen.weight is frozen, and has moved",
    ),
    Mistake(
        "a momentum",
        cell="step",
        code="""VELOCITY = {}


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
    return mean
""",
        says="Plain gradient descent has no memory.",
    ),
    Mistake(
        "what is left",
        cell="costs",
        code=costs(lost="share_right(model, batch, changed)"),
        says="This is what is left.",
    ),
    Mistake(
        "heads stay off",
        cell="costs",
        code=costs(copy=""),
        says="Start from all heads for each",
    ),
    Mistake(
        "the mean over the heads",
        cell="costs",
        code=costs(mean="found.mean(dim=1)"),
        says="The mean is over the heads",
    ),
    Mistake(
        "the mean over the columns",
        cell="costs",
        code=costs(mean="found[:, head].mean(dim=-1, keepdim=True)"),
        says="What the head says about this verb is still in it.",
    ),
    Mistake(
        "one number for all columns",
        cell="costs",
        code=costs(mean="found[:, head].mean()"),
        says="Each of the head's d_key columns has a mean of its own",
    ),
    Mistake(
        "one head alone",
        cell="costs",
        code=costs(where="torch.arange(found.shape[1]) != head", mean="torch.tensor(0.0)"),
        says="this is what one head can do alone",
    ),
    Mistake(
        "the gate left at 0",
        cell="costs",
        code="""def costs(model, batch):
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
    return lost
""",
        says="The model must come back as it went in",
    ),
    Mistake(
        "divided",
        cell="costs",
        code=costs(lost="1 - share_right(model, batch, changed) / before"),
        says="Subtract, and do not divide.",
    ),
    Mistake(
        "harm costs nothing",
        cell="costs",
        code=costs(lost="(before - share_right(model, batch, changed)).clamp(min=0)"),
        says="A head without which more is right is said to cost nothing.",
    ),
    Mistake(
        "needed by the map",
        cell="judge",
        code=judge(needs='"shown" if looks[head, question] > 0.5 else "refuted"'),
        says="You judge by where the head looks.",
    ),
    Mistake(
        "needed and looked at",
        cell="judge",
        code=judge(
            needs='"shown" if change <= -0.1 and looks[head, question] > 0.5 else "refuted"'
        ),
        says="A model can need a head that looks elsewhere",
    ),
    Mistake(
        "better is needed, too",
        cell="judge",
        code=judge(needs='"shown" if abs(change) >= 0.1 else "refuted"'),
        says="A model that is better without a head is not worse without it",
    ),
    Mistake(
        "idle where nothing changes",
        cell="judge",
        code=judge(idle='"refuted" if abs(change) >= 0.1 else "shown"'),
        says="nobody has switched both off",
    ),
    Mistake(
        "harm is no contribution",
        cell="judge",
        code=judge(idle='"refuted" if change <= -0.1 else "open"'),
        says="it does harm",
    ),
    Mistake(
        "every model from one",
        cell="judge",
        code=judge(every='"shown" if looks[:, question].max() > 0.5 else "refuted"'),
        says="One model cannot show what holds for every",
    ),
    Mistake(
        "one model refutes nothing",
        cell="judge",
        code=judge(every='"open"'),
        says="One model without such a head is enough",
    ),
    Mistake(
        "a weight is a share",
        cell="judge",
        code=judge(sure='"shown" if looks[head, question] > 0.5 else "refuted"'),
        says="A weight says how an average is mixed.",
    ),
    Mistake(
        "nothing says it, so it is false",
        cell="judge",
        code=judge(sure='"refuted"'),
        says="nothing can refute it either",
    ),
    Mistake(
        "another word for a verdict",
        cell="judge",
        code=judge(sure='"unknown"'),
        says='"shown", "refuted" or "open" is due',
    ),
    Mistake(
        "a head for the other question",
        cell="judge",
        code=judge(every='"open" if (looks > 0.5).any() else "refuted"'),
        says="You accept a head that looks at the other question.",
    ),
    Mistake(
        "a single step",
        cell="diagnose",
        code=diagnose(batches="[(torch.randn(6, 5), torch.randint(4, (6,)))]"),
        says="run more than one step",
    ),
    Mistake(
        "the same batch three times",
        cell="diagnose",
        code=diagnose(batches="[(torch.randn(6, 5), torch.randint(4, (6,)))] * 3"),
        says="batches that are alike",
    ),
    Mistake(
        "no tolerance",
        cell="diagnose",
        code=diagnose(close="torch.equal"),
        says="compare with a tolerance",
    ),
    Mistake(
        "what it returns is not looked at",
        cell="diagnose",
        code=diagnose(honest="True"),
        says="What it returns is wrong",
    ),
    Mistake(
        "the old sentences are the new ones",
        cell="diagnose",
        code=diagnose(new="batches[-1]", honest="True"),
        says="that differs from the old ones'",
    ),
    Mistake(
        "whether the loss falls",
        cell="diagnose",
        code="""def diagnose(train):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    x, answers = torch.randn(12, 4), torch.randint(3, (12,))
    before = F.cross_entropy(model(x), answers)
    train(model, [(x, answers)] * 5, (x, answers), 0.1)
    return "none" if F.cross_entropy(model(x), answers) < before else "uphill"
""",
        says="You call a loop",
    ),
    Mistake(
        "the gradients that are left in the parameters",
        cell="diagnose",
        code="""def diagnose(train):
    torch.manual_seed(0)
    batches = [(torch.randn(6, 4), torch.randint(3, (6,))) for _ in range(3)]
    model = nn.Linear(4, 3)
    train(model, batches, batches[0], 1e-9)
    total = sum(
        torch.autograd.grad(F.cross_entropy(model(x), answers), model.weight)[0]
        for x, answers in batches
    )
    return "piled up" if torch.allclose(model.weight.grad, total, atol=1e-4) else "none"
""",
        says="A loop need not leave anything in `.grad`.",
    ),
    Mistake(
        "looks inside of the loop",
        cell="diagnose",
        code="""NAMES = ("piled up", "softmax twice", "uphill", "one batch", "old sentences")


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
    return "none"
""",
        says='You call a loop "none"',
    ),
]

RIGHT = [
    Right(
        "autograd, from logarithms as logits",
        cell="log-loss",
        code="""def of(logits, answers):
    return F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=0)


def loss(shares, answers):
    return of(shares.log(), answers).item()


def gradient(shares, answers):
    logits = shares.log().requires_grad_()  # a softmax of these gives the shares back
    return torch.autograd.grad(of(logits, answers), logits)[0]
""",
    ),
    Right(
        "one place after another",
        cell="log-loss",
        code="""def loss(shares, answers):
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
    return found
""",
    ),
    Right(
        "torch's optimiser",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate)
    optimiser.zero_grad()
    rows = sum(len(x) for x, _ in parts)
    losses = []
    for x, answers in parts:
        losses.append(loss_of(model, x, answers) * len(x))
        (losses[-1] / rows).backward()
    optimiser.step()
    return sum(losses) / rows
""",
    ),
    Right(
        "sums by autograd.grad",
        cell="step",
        code="""def step(model, parts, loss_of, rate):
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
    return whole / rows
""",
    ),
    Right(
        "by the gate, and the mean by a stack",
        cell="costs",
        code="""def costs(model, batch):
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
    return torch.tensor(rows)
""",
    ),
    Right(
        "with a mask over the heads",
        cell="costs",
        code="""def costs(model, batch):
    found = found_at_verb(model, batch)
    before = share_right(model, batch, found)
    ways = (torch.zeros_like(found), found.mean(dim=0, keepdim=True).expand_as(found))
    lost = []
    for head in torch.eye(found.shape[1], dtype=torch.bool):
        changed = [torch.where(head[:, None], instead, found) for instead in ways]
        lost.append(torch.stack([before - share_right(model, batch, x) for x in changed]))
    return torch.stack(lost)
""",
    ),
    Right(
        "a table of rules",
        cell="judge",
        code="""def judge(claim, head, question, looks, right, without):
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
    }[claim]()
""",
    ),
    Right(
        "batches of its own, and another order",
        cell="diagnose",
        code=diagnose(),
    ),
    Right(
        "one experiment for each mistake",
        cell="diagnose",
        code="""def diagnose(train):
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
    return "none" if model_answers == 1.0 and none_right == 0.0 else "old sentences"
""",
    ),
]
