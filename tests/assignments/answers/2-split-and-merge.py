"""Answers to assignment 2: mistakes that must be named, and right answers written otherwise."""

from tests.assignments.submissions import Mistake, Right

MISTAKES = [
    Mistake(
        "dealt like cards",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    return b, s, d * n_heads + h
""",
        says="dealt out like cards",
    ),
    Mistake(
        "steps of n_heads",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    return b, s, h * n_heads + d
""",
        says="You step n_heads columns from one head to the next",
    ),
    Mistake(
        "the head as the token",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    return b, h, s * (d_model // n_heads) + d
""",
        says="the token depends on the head",
    ),
    Mistake(
        "the head forgotten",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    return b, s, d
""",
        says="Each of your heads begins at column 0",
    ),
    Mistake(
        "token and column swapped",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    return [b, h * d_model // n_heads + d, s]
""",
        says="in another order: x has the axes batch, token, column",
    ),
    Mistake(
        "nothing returned",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    place = b, s, h * d_model // n_heads + d
""",
        says="An index in x is due, three ints",
    ),
    Mistake(
        "a float as an index",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    return b, s, h * (d_model / n_heads) + d
""",
        says="`/` makes a float",
    ),
    Mistake(
        "always sentence 0",
        cell="origin",
        code="""def origin(index, d_model, n_heads):
    _, h, s, d = index
    batch = 0
    return batch, s, h * (d_model // n_heads) + d
""",
        says="In all of your answers the sentence is 0.",
    ),
    Mistake(
        "three blocks",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    from attention import split_heads

    return torch.stack([split_heads(part, n_heads) for part in fused.chunk(3, dim=-1)])
""",
        says="You cut the row into three blocks",
    ),
    Mistake(
        "viewed straight",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    batch, seq, width = fused.shape
    return fused.view(3, batch, n_heads, seq, -1)
""",
        says="a `view` straight to the final shape",
    ),
    Mistake(
        "heads taken out of the tokens",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    batch, seq, width = fused.shape
    return fused.view(batch, n_heads, seq, 3, -1).permute(3, 0, 1, 2, 4)
""",
        says="You take the heads out of the tokens",
    ),
    Mistake(
        "every third number",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    batch, seq, width = fused.shape
    return fused.view(batch, seq, n_heads, -1, 3).permute(4, 0, 2, 1, 3)
""",
        says="You take every third number of a head",
    ),
    Mistake(
        "heads not moved",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    batch, seq, width = fused.shape
    return fused.view(batch, seq, n_heads, 3, -1).permute(3, 0, 1, 2, 4)
""",
        says="Heads and tokens have not changed places",
    ),
    Mistake(
        "the batch in front",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    batch, seq, width = fused.shape
    return fused.view(batch, seq, n_heads, 3, -1).permute(0, 3, 2, 1, 4)
""",
        says="The batch is in front of the three",
    ),
    Mistake(
        "a tuple of three",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    batch, seq, width = fused.shape
    return fused.view(batch, seq, n_heads, 3, -1).transpose(1, 2).unbind(3)
""",
        says="`torch.stack` joins several tensors along a new axis",
    ),
    Mistake(
        "the colleague's merge",
        cell="merge-heads",
        code="""
def merge_heads(x):
    batch, heads, seq, d_key = x.shape
    return x.permute(0, 2, 3, 1).reshape(batch, seq, heads * d_key)
""",
        says="shuffled into each other like cards",
    ),
    Mistake(
        "through lists",
        cell="merge-heads",
        code="""def merge_heads(x):
    batch, heads, seq, d_key = x.shape
    rows = [
        [sum((x[b, h, s].tolist() for h in range(heads)), []) for s in range(seq)]
        for b in range(batch)
    ]
    return torch.tensor(rows)
""",
        says="no gradient goes back through them",
    ),
    Mistake(
        "one row for each head",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    return w_o[keep]
""",
        says="You have taken one row for each head",
    ),
    Mistake(
        "columns",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    d_key = w_o.shape[0] // n_heads
    return torch.cat([w_o[:, h * d_key : (h + 1) * d_key] for h in keep], dim=1)
""",
        says="You have taken columns of W_o",
    ),
    Mistake(
        "every n_heads-th row",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    return torch.cat([w_o[h::n_heads] for h in keep])
""",
        says="You have taken every n_heads-th row",
    ),
    Mistake(
        "sorted",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    blocks = w_o.view(n_heads, -1, w_o.shape[1])
    return torch.cat([blocks[h] for h in range(n_heads) if h in keep])
""",
        says="in another order: the heads are merged in the order of `keep`",
    ),
    Mistake(
        "the removed heads",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    blocks = w_o.view(n_heads, -1, w_o.shape[1])
    return torch.cat([blocks[h] for h in range(n_heads) if h not in keep])
""",
        says="the rows of the heads that were removed",
    ),
    Mistake(
        "zeros instead of fewer rows",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    smaller = w_o.clone().view(n_heads, -1, w_o.shape[1])
    for h in range(n_heads):
        if h not in keep:
            smaller[h] = 0.0
    return smaller.view_as(w_o)
""",
        says="The rows of removed heads are 0 and still there",
    ),
    Mistake(
        "zeros written into the weights",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    blocks = w_o.view(n_heads, -1, w_o.shape[1])
    for h in range(n_heads):
        if h not in keep:
            blocks[h] = 0.0
    return torch.cat([blocks[h] for h in keep])
""",
        says="An input is changed in place",
    ),
]

RIGHT = [
    Right(
        "divmod",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    return torch.tensor([b, s, d + d_model // n_heads * h])
""",
    ),
    Right(
        "looked up in a small split",
        cell="origin",
        code="""
def origin(index, d_model, n_heads):
    b, h, s, d = index
    columns = torch.arange(d_model).view(n_heads, -1)
    return [b, s, int(columns[h, d])]
""",
    ),
    Right(
        "by slices",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    parts = fused.chunk(3 * n_heads, dim=-1)  # q, k, v of head 0, then of head 1 …
    return torch.stack([torch.stack(parts[i::3], dim=1) for i in range(3)])
""",
    ),
    Right(
        "heads first, then the three",
        cell="unpack",
        code="""
def unpack(fused, n_heads):
    heads = fused.unflatten(-1, (n_heads, -1)).transpose(1, 2)
    return torch.stack(heads.chunk(3, dim=-1)).double()
""",
    ),
    Right(
        "cat",
        cell="merge-heads",
        code="""
def merge_heads(x):
    return torch.cat(x.unbind(dim=1), dim=-1)
""",
    ),
    Right(
        "written head by head",
        cell="merge-heads",
        code="""
def merge_heads(x):
    batch, heads, seq, d_key = x.shape
    merged = torch.zeros(batch, seq, heads * d_key)
    for h in range(heads):
        merged[:, :, h * d_key : (h + 1) * d_key] = x[:, h]
    return merged
""",
    ),
    Right(
        "by index",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    d_key = w_o.shape[0] // n_heads
    rows = torch.tensor(keep)[:, None] * d_key + torch.arange(d_key)
    return w_o[rows.flatten()]
""",
    ),
    Right(
        "a view and its blocks",
        cell="kept-rows",
        code="""
def kept_rows(w_o, keep, n_heads):
    return w_o.unflatten(0, (n_heads, -1))[keep].flatten(0, 1)
""",
    ),
]
