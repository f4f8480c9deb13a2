"""Answers to 3-dot-product: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "raised": """def raised(weights, j, amount):
    scores = weights.log()
    scores[..., j] += amount
    return scores.softmax(dim=-1)""",
    "find-divisor": """def find_divisor(dots, weights):
    return dots.std() / weights.log().std()""",
}

MISTAKES = [
    (
        "not scaled",
        {
            """scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = scores""": "weights = (query @ key.mT)"
        },
        "The scores are not scaled",
    ),
    (
        "not divided by the new sum",
        {
            "raised": """def raised(weights, j, amount):
    weights = weights.clone()
    weights[..., j] *= torch.tensor(amount).exp()
    return weights"""
        },
        "but rows no longer sum to 1",
    ),
    (
        "the weights written over",
        {
            "raised": """def raised(weights, j, amount):
    weights[..., j] *= torch.tensor(amount).exp()
    return weights / weights.sum(dim=-1, keepdim=True)"""
        },
        "An input is changed in place",
    ),
    (
        "added to the weight",
        {
            "raised": """def raised(weights, j, amount):
    weights = weights.clone()
    weights[..., j] += amount
    return weights / weights.sum(dim=-1, keepdim=True)"""
        },
        "The amount is added to the weight",
    ),
    ("softmax of weights", {"= weights.log": "= weights.clone"}, "This is a softmax over weights"),
    (
        "times the amount",
        {
            "raised": """def raised(weights, j, amount):
    weights = weights.clone()
    weights[..., j] *= amount
    return weights / weights.sum(dim=-1, keepdim=True)"""
        },
        "multiplied by the amount itself",
    ),
    (
        "the amount for all keys",
        {
            "raised": """def raised(weights, j, amount):
    return (weights.log() + amount).softmax(dim=-1)"""
        },
        "An amount that all scores get changes no weight",
    ),
    (
        "key 0 taken for none",
        {
            "raised": """def raised(weights, j, amount):
    j = j or -1
    scores = weights.log()
    scores[..., j] += amount
    return scores.softmax(dim=-1)"""
        },
        "It is the last key's score that has risen.",
    ),
    (
        "taken in equal parts",
        {
            "raised": """def raised(weights, j, amount):
    factor = torch.tensor(amount).exp()
    old = weights[..., j : j + 1]
    won = old * factor / (1 + old * (factor - 1)) - old
    new = weights - won / (weights.shape[-1] - 1)
    new[..., j : j + 1] = old + won
    return new"""
        },
        "taken from the others in equal parts",
    ),
    (
        "a scale instead of a divisor",
        {
            "return dots.std() / weights.log().std(": """logs = weights.log()
    return (logs[1] - logs[0]) / (dots[1] - dots[0]"""
        },
        "what the dot products were multiplied by",
    ),
    (
        "one weight alone",
        {".std() / weights.log().std()": "[0] / weights[0].log()"},
        "The logarithm of a single weight holds the sum",
    ),
    (
        "no logarithm",
        {
            "find-divisor": """def find_divisor(dots, weights):
    i, j = weights.argmax(), weights.argmin()
    return (dots[i] - dots[j]) / (weights[i] - weights[j])"""
        },
        "You have compared the weights themselves",
    ),
    (
        "log10",
        {
            "dots.std() / weights.log().std(": "(dots[1] - dots[0]) / (weights[1].log10() - weights[0].log10()"
        },
        "must be to base e",
    ),
    (
        "the differences in opposite order",
        {
            "dots.std() / weights.log().std(": "(dots[1] - dots[0]) / (weights[0].log() - weights[1].log()"
        },
        "The size is right, the sign is not",
    ),
    (
        "guessed from the number of keys",
        {"dots.std() / weights.log().std()": "len(dots) ** 0.5"},
        "That is the root of the number of keys",
    ),
    (
        "rounds to a whole number",
        {
            "return dots.std() / weights.log().std(": """i, j = dots.argmax(), dots.argmin()
    return round(float((dots[i] - dots[j]) / (weights[i].log() - weights[j].log()))"""
        },
        "You round to a whole number.",
    ),
    (
        "odds of one weight",
        {
            "return dots.std() / weights.log().std(": """p = weights[0]
    return float((dots[0] - dots[1]) / (p / (1 - p)).log()"""
        },
        "as if there were no others",
    ),
    (
        "the plain mean",
        {
            "combine": """def combine(outputs, log_sums):
    return outputs.mean(dim=0)"""
        },
        "the plain mean of the outputs",
    ),
    (
        "logarithms as shares",
        {
            "combine": """def combine(outputs, log_sums):
    shares = log_sums / log_sums.sum(dim=0)
    return (shares.unsqueeze(-1) * outputs).sum(dim=0)"""
        },
        "The logarithms themselves are taken as shares",
    ),
    (
        "overflow",
        {
            "combine": """def combine(outputs, log_sums):
    sums = log_sums.exp()
    return (sums.unsqueeze(-1) * outputs).sum(dim=0) / sums.sum(dim=0).unsqueeze(-1)"""
        },
        "Some power overflows",
    ),
    (
        "shares over the queries",
        {
            "combine": """def combine(outputs, log_sums):
    return (log_sums.softmax(dim=-1)[..., None] * outputs).sum(dim=0)"""
        },
        "The shares sum to 1 over the queries",
    ),
    (
        "not divided",
        {
            "combine": """def combine(outputs, log_sums):
    return (log_sums.exp()[..., None] * outputs).sum(dim=0)"""
        },
        "the division by the sum of all machines is missing",
    ),
    (
        "the larger sum counts less",
        {
            "combine": """def combine(outputs, log_sums):
    return ((-log_sums).softmax(dim=0)[..., None] * outputs).sum(dim=0)"""
        },
        "The shares are the wrong way round",
    ),
    (
        "the best machine alone",
        {
            "combine": """def combine(outputs, log_sums):
    best = log_sums.argmax(dim=0)
    result = torch.zeros_like(outputs[0])
    for m in range(len(outputs)):
        result[best == m] = outputs[m][best == m]
    return result"""
        },
        "you keep the output of one machine",
    ),
    (
        "the largest of all queries",
        {
            "combine": """def combine(outputs, log_sums):
    sums = torch.exp(log_sums - log_sums.max())
    total = sums.sum(dim=0, keepdim=True)
    return (outputs * (sums / total).unsqueeze(-1)).sum(dim=0)"""
        },
        "The largest logarithm of all queries is subtracted.",
    ),
    (
        "the mean of the machines subtracted",
        {
            "shares = log_sums.softmax": """sums = (log_sums - log_sums.mean(dim=0)).exp()
    shares = sums / sums.sum"""
        },
        "The mean of the machines is subtracted.",
    ),
]

RIGHT = [
    (
        "torch's own function, the output alone",
        {
            "attend": """def attend(query, key, value):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value)"""
        },
    ),
    (
        "einsum in float64, with a softmax by hand",
        {
            "attend": """def attend(query, key, value):
    scores = torch.einsum("bhqd,bhkd->bhqk", query.double(), key.double())
    scores = scores / scores.new_tensor(query.shape[-1]).sqrt()
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value.double()), weights"""
        },
    ),
    (
        "query by query",
        {
            """scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1""": """query, rows = query / query.shape[-1] ** 0.5, []
    for i in range(query.shape[2]):
        rows.append((key * query[:, :, i : i + 1]).sum(dim=-1).softmax(dim=-1))
    weights = torch.stack(rows, dim=2"""
        },
    ),
    (
        "the new sum from the old weight",
        {
            "raised": """def raised(weights, j, amount):
    import math

    total = 1 + weights[..., j : j + 1] * (math.exp(amount) - 1)
    result = weights / total
    result[..., j] *= math.exp(amount)
    return result"""
        },
    ),
    (
        "a line through all points",
        {
            "return dots.std() / weights.log().std": """logs = weights.double().log()
    d = dots.double() - dots.double().mean()
    return (d * d).sum() / (d * (logs - logs.mean())).sum"""
        },
    ),
    (
        "neighbours",
        {
            "return dots.std() / weights.log().std(": """import math

    return (dots[1] - dots[0]).item() / math.log(weights[1] / weights[0]"""
        },
    ),
    (
        "one machine after the other",
        {
            "combine": """def combine(outputs, log_sums):
    output, log_sum = outputs[0], log_sums[0]
    for m in range(1, len(outputs)):
        share = torch.sigmoid(log_sums[m] - log_sum).unsqueeze(-1)
        output = (1 - share) * output + share * outputs[m]
        log_sum = torch.logaddexp(log_sum, log_sums[m])
    return output"""
        },
    ),
    (
        "the largest taken away",
        {
            "combine": """def combine(outputs, log_sums):
    powers = (log_sums - log_sums.amax(dim=0)).double().exp()
    return torch.einsum("mbhq,mbhqd->bhqd", powers / powers.sum(dim=0), outputs.double())"""
        },
    ),
]
