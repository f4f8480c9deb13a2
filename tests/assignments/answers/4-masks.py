"""Answers to 4-masks: mistakes that students make, and right ones written in another way."""

MISTAKES = [
    ("the window counts the token itself", {"key >=": "key >"}, "itself and the 1 right before it"),
    ("one key too many", {"- window": "- window - 1"}, "That is one too many"),
    (
        "first query at the first key",
        {"n_keys - n_queries, n_keys": "n_queries"},
        "The first query is aligned with the first key",
    ),
    (
        "the future of the text is seen",
        {
            "packed-mask": """def packed_mask(document):
    same = document[:, :, None] == document[:, None, :]
    return (same & (document != 0)[:, None, :])[:, None]"""
        },
        "Some of these come after it.",
    ),
    (
        "or instead of and",
        {
            """token = (document != 0)[:, None, :]  # (batch, 1, key)
    causal""": "causal",
            "& token &": "|",
        },
        "combine them with `&`, not with `|`",
    ),
    (
        "padding and causal alone",
        {
            "packed-mask": """def packed_mask(document):
    seq = document.shape[1]
    token = (document != 0)[:, None, None, :]
    return token & torch.ones(seq, seq, dtype=torch.bool).tril()"""
        },
        "Some belong to another text",
    ),
    (
        "no axis of heads",
        {
            "packed-mask": """def packed_mask(document):
    seq = document.shape[1]
    same = document[:, :, None] == document[:, None, :]
    return same & (document != 0)[:, None, :] & torch.ones(seq, seq, dtype=torch.bool).tril()"""
        },
        "adds the axis of heads after the batch",
    ),
    (
        "padding ends a text",
        {
            """same = document[:, :, None] == document[:, None, :]  # (batch, query, key)
    token = (document != 0)""": """begins = torch.zeros_like(document)
    begins[:, 1:] = document[:, 1:] != document[:, :-1]
    run = begins.cumsum(dim=1)
    same = run[:, :, None] == run""",
            "token & causal": "causal & (document != 0)[:, None, :]",
        },
        "Padding within a text does not end it",
    ),
    (
        "numbers as bytes",
        {
            "packed-mask": """def packed_mask(document):
    number = document.to(torch.uint8)
    same = number[:, None, :, None] == number[:, None, None, :]
    return (same & (number != 0)[:, None, None, :]).tril()"""
        },
        "It sees too little",
    ),
    (
        "rows are not divided",
        {
            "repair": """def repair(weights, mask):
    return weights * mask"""
        },
        "Divide each row, over its keys, by what is left of it.",
    ),
    (
        "divided by zero",
        {
            "repair": """def repair(weights, mask):
    left = weights * mask
    return left / left.sum(dim=-1, keepdim=True)"""
        },
        "NaN comes from 0/0",
    ),
    (
        "a second softmax",
        {"* mask": '.masked_fill(~mask, float("-inf")).softmax(dim=-1).nan_to_num()'},
        "a second softmax is wrong",
    ),
    (
        "the mask the wrong way round",
        {
            "repair": """def repair(weights, mask):
    left = weights.masked_fill(mask, 0.0)
    return left / left.sum(dim=-1, keepdim=True).clamp_min(1e-9)"""
        },
        "the weight lies on the forbidden keys",
    ),
    (
        "a finite fill for a row that sees nothing",
        {"* mask": ".log().masked_fill(~mask, -1e9).softmax(dim=-1)"},
        "a query that may attend to nothing has weight somewhere",
    ),
    (
        "weights changed in place",
        {
            "repair": """def repair(weights, mask):
    weights *= mask
    total = weights.sum(dim=-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0)"""
        },
        "An input is changed in place",
    ),
    (
        "the row of t instead of its column",
        {
            "rows-that-change": """def rows_that_change(mask, t):
    return mask[t].nonzero().flatten().tolist()"""
        },
        "These are the tokens that",
    ),
    (
        "the query of t forgotten",
        {
            "rows-that-change": """def rows_that_change(mask, t):
    return mask[:, t].nonzero().flatten().tolist()"""
        },
        "Its query is another one",
    ),
    (
        "row t wherever it sees something",
        {
            "rows-that-change": """def rows_that_change(mask, t):
    rows = set(mask[:, t].nonzero().flatten().tolist())
    return sorted(rows | {t}) if mask[t].any() else sorted(rows)"""
        },
        "Its only key is another token",
    ),
    (
        "every mask taken for the causal one",
        {"mask[:, t].nonzero().flatten().tolist(": "list(range(t, len(mask))"},
        "It is in your list",
    ),
    (
        "written into the mask",
        {
            "rows-that-change": """def rows_that_change(mask, t):
    rows = [i for i in range(len(mask)) if mask[i, t]]
    sees_itself = t in rows
    mask[t, t] = False
    others = int(mask[t].sum())
    if not sees_itself and others > 1:
        rows.append(t)
    return rows"""
        },
        "The mask is changed in place",
    ),
    (
        "a list of lists",
        {
            "rows-that-change": """def rows_that_change(mask, t):
    changes = mask[:, t].clone()
    changes[t] |= mask[t].sum() >= 2
    return changes.nonzero().tolist()"""
        },
        "`.flatten().tolist()` makes one list",
    ),
]

RIGHT = [
    (
        "loops over positions",
        {
            "window-mask": """def window_mask(n_queries, n_keys, window):
    mask = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    for query in range(n_queries):
        position = n_keys - n_queries + query
        for key in range(max(0, position - window), position + 1):
            mask[query, key] = True
    return mask"""
        },
    ),
    (
        "text by text",
        {
            "packed-mask": """def packed_mask(document):
    batch, seq = document.shape
    mask = torch.zeros(batch, 1, seq, seq, dtype=torch.bool)
    for row, texts in enumerate(document.tolist()):
        for query in range(seq):
            for key in range(query + 1):
                mask[row, 0, query, key] = texts[key] != 0 and texts[key] == texts[query]
    return mask"""
        },
    ),
    (
        "padding sees its past",
        {
            "packed-mask": """def packed_mask(document):
    mask = document[:, :, None] == document[:, None, :]
    mask |= (document == 0)[:, :, None]  # nobody reads these rows
    mask &= (document != 0)[:, None, :]
    return mask.tril()[:, None]"""
        },
    ),
    (
        "back to scores by the logarithm",
        {
            "repair": """def repair(weights, mask):
    scores = weights.double().log().masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1).nan_to_num().to(weights.dtype)"""
        },
    ),
    (
        "a tensor of rows, from counts",
        {
            "rows-that-change": """def rows_that_change(mask, t):
    sees_t = mask[:, t].clone()
    if mask[t].sum() >= 2:
        sees_t[t] = True
    return torch.where(sees_t)[0]"""
        },
    ),
]
