"""Answers to assignment 3: mistakes that must be named, and right answers written otherwise."""

from tests.assignments.submissions import Mistake, Right

MISTAKES = [
    Mistake(
        "not scaled",
        cell="attend",
        code="""
def attend(query, key, value):
    weights = (query @ key.mT).softmax(dim=-1)
    return weights @ value, weights
""",
        says="The scores are not scaled",
    ),
    Mistake(
        "not divided by the new sum",
        cell="raised",
        code="""
def raised(weights, j, amount):
    weights = weights.clone()
    weights[..., j] *= torch.tensor(amount).exp()
    return weights
""",
        says="but rows no longer sum to 1",
    ),
    Mistake(
        "the weights written over",
        cell="raised",
        code="""
def raised(weights, j, amount):
    weights[..., j] *= torch.tensor(amount).exp()
    return weights / weights.sum(dim=-1, keepdim=True)
""",
        says="An input is changed in place",
    ),
    Mistake(
        "added to the weight",
        cell="raised",
        code="""
def raised(weights, j, amount):
    weights = weights.clone()
    weights[..., j] += amount
    return weights / weights.sum(dim=-1, keepdim=True)
""",
        says="The amount is added to the weight",
    ),
    Mistake(
        "softmax of weights",
        cell="raised",
        code="""
def raised(weights, j, amount):
    scores = weights.clone()
    scores[..., j] += amount
    return scores.softmax(dim=-1)
""",
        says="This is a softmax over weights",
    ),
    Mistake(
        "times the amount",
        cell="raised",
        code="""
def raised(weights, j, amount):
    weights = weights.clone()
    weights[..., j] *= amount
    return weights / weights.sum(dim=-1, keepdim=True)
""",
        says="multiplied by the amount itself",
    ),
    Mistake(
        "the amount for all keys",
        cell="raised",
        code="""
def raised(weights, j, amount):
    return (weights.log() + amount).softmax(dim=-1)
""",
        says="An amount that all scores get changes no weight",
    ),
    Mistake(
        "key 0 taken for none",
        cell="raised",
        code="""def raised(weights, j, amount):
    j = j or -1
    scores = weights.log()
    scores[..., j] += amount
    return scores.softmax(dim=-1)
""",
        says="It is the last key's score that has risen.",
    ),
    Mistake(
        "taken in equal parts",
        cell="raised",
        code="""def raised(weights, j, amount):
    factor = torch.tensor(amount).exp()
    old = weights[..., j : j + 1]
    won = old * factor / (1 + old * (factor - 1)) - old
    new = weights - won / (weights.shape[-1] - 1)
    new[..., j : j + 1] = old + won
    return new
""",
        says="taken from the others in equal parts",
    ),
    Mistake(
        "a scale instead of a divisor",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    logs = weights.log()
    return (logs[1] - logs[0]) / (dots[1] - dots[0])
""",
        says="what the dot products were multiplied by",
    ),
    Mistake(
        "one weight alone",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    return dots[0] / weights[0].log()
""",
        says="The logarithm of a single weight holds the sum",
    ),
    Mistake(
        "no logarithm",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    i, j = weights.argmax(), weights.argmin()
    return (dots[i] - dots[j]) / (weights[i] - weights[j])
""",
        says="You have compared the weights themselves",
    ),
    Mistake(
        "log10",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    return (dots[1] - dots[0]) / (weights[1].log10() - weights[0].log10())
""",
        says="the one to the base e",
    ),
    Mistake(
        "the differences in opposite order",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    return (dots[1] - dots[0]) / (weights[0].log() - weights[1].log())
""",
        says="The size is right, the sign is not",
    ),
    Mistake(
        "guessed from the number of keys",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    return len(dots) ** 0.5
""",
        says="That is the root of the number of keys",
    ),
    Mistake(
        "rounds to a whole number",
        cell="find-divisor",
        code="""def find_divisor(dots, weights):
    i, j = dots.argmax(), dots.argmin()
    return round(float((dots[i] - dots[j]) / (weights[i].log() - weights[j].log())))
""",
        says="You round to a whole number.",
    ),
    Mistake(
        "odds of one weight",
        cell="find-divisor",
        code="""def find_divisor(dots, weights):
    p = weights[0]
    return float((dots[0] - dots[1]) / (p / (1 - p)).log())
""",
        says="as if there were no others",
    ),
    Mistake(
        "the plain mean",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    return outputs.mean(dim=0)
""",
        says="the plain mean of the outputs",
    ),
    Mistake(
        "logarithms as shares",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    shares = log_sums / log_sums.sum(dim=0)
    return (shares.unsqueeze(-1) * outputs).sum(dim=0)
""",
        says="The logarithms themselves are taken as shares",
    ),
    Mistake(
        "overflow",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    sums = log_sums.exp()
    return (sums.unsqueeze(-1) * outputs).sum(dim=0) / sums.sum(dim=0).unsqueeze(-1)
""",
        says="Some power overflows",
    ),
    Mistake(
        "shares over the queries",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    return (log_sums.softmax(dim=-1)[..., None] * outputs).sum(dim=0)
""",
        says="The shares sum to 1 over the queries",
    ),
    Mistake(
        "not divided",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    return (log_sums.exp()[..., None] * outputs).sum(dim=0)
""",
        says="the division by the sum of all machines is missing",
    ),
    Mistake(
        "the larger sum counts less",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    return ((-log_sums).softmax(dim=0)[..., None] * outputs).sum(dim=0)
""",
        says="The shares are the wrong way round",
    ),
    Mistake(
        "the best machine alone",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    best = log_sums.argmax(dim=0)
    result = torch.zeros_like(outputs[0])
    for m in range(len(outputs)):
        result[best == m] = outputs[m][best == m]
    return result
""",
        says="you keep the output of one machine",
    ),
    Mistake(
        "the largest of all queries",
        cell="combine",
        code="""def combine(outputs, log_sums):
    sums = torch.exp(log_sums - log_sums.max())
    total = sums.sum(dim=0, keepdim=True)
    return (outputs * (sums / total).unsqueeze(-1)).sum(dim=0)
""",
        says="The largest logarithm of all queries is subtracted.",
    ),
    Mistake(
        "the mean of the machines subtracted",
        cell="combine",
        code="""def combine(outputs, log_sums):
    sums = (log_sums - log_sums.mean(dim=0)).exp()
    shares = sums / sums.sum(dim=0)
    return (shares[..., None] * outputs).sum(dim=0)
""",
        says="The mean of the machines is subtracted.",
    ),
]

RIGHT = [
    Right(
        "torch's own function, the output alone",
        cell="attend",
        code="""
def attend(query, key, value):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value)
""",
    ),
    Right(
        "einsum in float64, with a softmax by hand",
        cell="attend",
        code="""
def attend(query, key, value):
    scores = torch.einsum("bhqd,bhkd->bhqk", query.double(), key.double())
    scores = scores / scores.new_tensor(query.shape[-1]).sqrt()
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value.double()), weights
""",
    ),
    Right(
        "query by query",
        cell="attend",
        code="""
def attend(query, key, value):
    query, rows = query / query.shape[-1] ** 0.5, []
    for i in range(query.shape[2]):
        rows.append((key * query[:, :, i : i + 1]).sum(dim=-1).softmax(dim=-1))
    weights = torch.stack(rows, dim=2)
    return weights @ value, weights
""",
    ),
    Right(
        "back to scores",
        cell="raised",
        code="""
def raised(weights, j, amount):
    scores = weights.log()
    scores[..., j] += amount
    return scores.softmax(dim=-1)
""",
    ),
    Right(
        "the new sum from the old weight",
        cell="raised",
        code="""
def raised(weights, j, amount):
    import math

    total = 1 + weights[..., j : j + 1] * (math.exp(amount) - 1)
    result = weights / total
    result[..., j] *= math.exp(amount)
    return result
""",
    ),
    Right(
        "a line through all points",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    logs = weights.double().log()
    d = dots.double() - dots.double().mean()
    return (d * d).sum() / (d * (logs - logs.mean())).sum()
""",
    ),
    Right(
        "neighbours",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    import math

    return (dots[1] - dots[0]).item() / math.log(weights[1] / weights[0])
""",
    ),
    Right(
        "spreads",
        cell="find-divisor",
        code="""
def find_divisor(dots, weights):
    return dots.std() / weights.log().std()
""",
    ),
    Right(
        "one machine after the other",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    output, log_sum = outputs[0], log_sums[0]
    for m in range(1, len(outputs)):
        share = torch.sigmoid(log_sums[m] - log_sum).unsqueeze(-1)
        output = (1 - share) * output + share * outputs[m]
        log_sum = torch.logaddexp(log_sum, log_sums[m])
    return output
""",
    ),
    Right(
        "the largest taken away",
        cell="combine",
        code="""
def combine(outputs, log_sums):
    powers = (log_sums - log_sums.amax(dim=0)).double().exp()
    return torch.einsum("mbhq,mbhqd->bhqd", powers / powers.sum(dim=0), outputs.double())
""",
    ),
]
