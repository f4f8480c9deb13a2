"""Answers to 4-masks: mistakes that students make, and right ones written in another way."""

from tests.assignments.submissions import Mistake, Right

MISTAKES = [
    Mistake(
        "the window counts the token itself",
        cell="window-mask",
        code="""def window_mask(n_queries, n_keys, window):
    query = torch.arange(n_keys - n_queries, n_keys)[:, None]
    key = torch.arange(n_keys)
    return (key <= query) & (key > query - window)
""",
        says="itself and the 1 right before it",
    ),
    Mistake(
        "one key too many",
        cell="window-mask",
        code="""def window_mask(n_queries, n_keys, window):
    query = torch.arange(n_keys - n_queries, n_keys)[:, None]
    key = torch.arange(n_keys)
    return (key <= query) & (key >= query - window - 1)
""",
        says="That is one too many",
    ),
    Mistake(
        "first query at the first key",
        cell="window-mask",
        code="""def window_mask(n_queries, n_keys, window):
    query = torch.arange(n_queries)[:, None]
    key = torch.arange(n_keys)
    return (key <= query) & (key >= query - window)
""",
        says="The first query is aligned with the first key",
    ),
    Mistake(
        "the future of the text is seen",
        cell="packed-mask",
        code="""def packed_mask(document):
    same = document[:, :, None] == document[:, None, :]
    return (same & (document != 0)[:, None, :])[:, None]
""",
        says="Some of these come after it.",
    ),
    Mistake(
        "or instead of and",
        cell="packed-mask",
        code="""def packed_mask(document):
    seq = document.shape[1]
    same = document[:, :, None] == document[:, None, :]
    causal = torch.ones(seq, seq, dtype=torch.bool).tril()
    return (same | causal)[:, None]
""",
        says="combine them with `&`, not with `|`",
    ),
    Mistake(
        "padding and causal alone",
        cell="packed-mask",
        code="""def packed_mask(document):
    seq = document.shape[1]
    token = (document != 0)[:, None, None, :]
    return token & torch.ones(seq, seq, dtype=torch.bool).tril()
""",
        says="Some belong to another text",
    ),
    Mistake(
        "no axis of heads",
        cell="packed-mask",
        code="""def packed_mask(document):
    seq = document.shape[1]
    same = document[:, :, None] == document[:, None, :]
    return same & (document != 0)[:, None, :] & torch.ones(seq, seq, dtype=torch.bool).tril()
""",
        says="adds the axis of heads behind the batch",
    ),
    Mistake(
        "padding ends a text",
        cell="packed-mask",
        code="""def packed_mask(document):
    seq = document.shape[1]
    begins = torch.zeros_like(document)
    begins[:, 1:] = document[:, 1:] != document[:, :-1]
    run = begins.cumsum(dim=1)
    same = run[:, :, None] == run[:, None, :]
    causal = torch.ones(seq, seq, dtype=torch.bool).tril()
    return (same & causal & (document != 0)[:, None, :])[:, None]
""",
        says="Padding within a text does not end it",
    ),
    Mistake(
        "numbers as bytes",
        cell="packed-mask",
        code="""def packed_mask(document):
    number = document.to(torch.uint8)
    same = number[:, None, :, None] == number[:, None, None, :]
    return (same & (number != 0)[:, None, None, :]).tril()
""",
        says="It sees too little",
    ),
    Mistake(
        "rows are not divided",
        cell="repair",
        code="""def repair(weights, mask):
    return weights * mask
""",
        says="Divide each row, over its keys, by what is left of it.",
    ),
    Mistake(
        "divided by zero",
        cell="repair",
        code="""def repair(weights, mask):
    left = weights * mask
    return left / left.sum(dim=-1, keepdim=True)
""",
        says="NaN comes from 0/0",
    ),
    Mistake(
        "a second softmax",
        cell="repair",
        code="""def repair(weights, mask):
    return weights.masked_fill(~mask, float("-inf")).softmax(dim=-1).nan_to_num()
""",
        says="a second softmax is wrong",
    ),
    Mistake(
        "the mask the wrong way round",
        cell="repair",
        code="""def repair(weights, mask):
    left = weights.masked_fill(mask, 0.0)
    return left / left.sum(dim=-1, keepdim=True).clamp_min(1e-9)
""",
        says="the weight lies on the forbidden keys",
    ),
    Mistake(
        "a finite fill for a row that sees nothing",
        cell="repair",
        code="""def repair(weights, mask):
    return weights.log().masked_fill(~mask, -1e9).softmax(dim=-1)
""",
        says="a query that may attend to nothing has weight somewhere",
    ),
    Mistake(
        "weights changed in place",
        cell="repair",
        code="""def repair(weights, mask):
    weights *= mask
    total = weights.sum(dim=-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0)
""",
        says="An input is changed in place",
    ),
    Mistake(
        "the row of t instead of its column",
        cell="rows-that-change",
        code="""def rows_that_change(mask, t):
    return mask[t].nonzero().flatten().tolist()
""",
        says="These are the tokens that",
    ),
    Mistake(
        "the query of t forgotten",
        cell="rows-that-change",
        code="""def rows_that_change(mask, t):
    return mask[:, t].nonzero().flatten().tolist()
""",
        says="Its query is another one",
    ),
    Mistake(
        "row t wherever it sees something",
        cell="rows-that-change",
        code="""def rows_that_change(mask, t):
    rows = set(mask[:, t].nonzero().flatten().tolist())
    return sorted(rows | {t}) if mask[t].any() else sorted(rows)
""",
        says="Its only key is another token",
    ),
    Mistake(
        "every mask taken for the causal one",
        cell="rows-that-change",
        code="""def rows_that_change(mask, t):
    return list(range(t, len(mask)))
""",
        says="It is in your list",
    ),
    Mistake(
        "written into the mask",
        cell="rows-that-change",
        code="""def rows_that_change(mask, t):
    rows = [i for i in range(len(mask)) if mask[i, t]]
    sees_itself = t in rows
    mask[t, t] = False
    others = int(mask[t].sum())
    if not sees_itself and others > 1:
        rows.append(t)
    return rows
""",
        says="The mask is changed in place",
    ),
    Mistake(
        "a list of lists",
        cell="rows-that-change",
        code="""def rows_that_change(mask, t):
    changes = mask[:, t].clone()
    changes[t] |= mask[t].sum() >= 2
    return changes.nonzero().tolist()
""",
        says="`.flatten().tolist()` makes one list",
    ),
]

RIGHT = [
    Right(
        "loops over positions",
        cell="window-mask",
        code="""def window_mask(n_queries, n_keys, window):
    mask = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    for query in range(n_queries):
        position = n_keys - n_queries + query
        for key in range(max(0, position - window), position + 1):
            mask[query, key] = True
    return mask
""",
    ),
    Right(
        "text by text",
        cell="packed-mask",
        code="""def packed_mask(document):
    batch, seq = document.shape
    mask = torch.zeros(batch, 1, seq, seq, dtype=torch.bool)
    for row, texts in enumerate(document.tolist()):
        for query in range(seq):
            for key in range(query + 1):
                mask[row, 0, query, key] = texts[key] != 0 and texts[key] == texts[query]
    return mask
""",
    ),
    Right(
        "padding sees its past",
        cell="packed-mask",
        code="""def packed_mask(document):
    mask = document[:, :, None] == document[:, None, :]
    mask |= (document == 0)[:, :, None]  # nobody reads these rows
    mask &= (document != 0)[:, None, :]
    return mask.tril()[:, None]
""",
    ),
    Right(
        "back to scores by the logarithm",
        cell="repair",
        code="""def repair(weights, mask):
    scores = weights.double().log().masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1).nan_to_num().to(weights.dtype)
""",
    ),
    Right(
        "a tensor of rows, from counts",
        cell="rows-that-change",
        code="""def rows_that_change(mask, t):
    sees_t = mask[:, t].clone()
    if mask[t].sum() >= 2:
        sees_t[t] = True
    return torch.where(sees_t)[0]
""",
    ),
]
