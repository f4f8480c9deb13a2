"""Answers to 2-split-and-merge: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "origin": """def origin(index, d_model, n_heads):
    b, h, s, d = index
    return torch.tensor([b, s, d + d_model // n_heads * h])""",
    "kept-rows": """def kept_rows(w_o, keep, n_heads):
    return w_o.unflatten(0, (n_heads, -1))[keep].flatten(0, 1)""",
}

MISTAKES = [
    (
        "dealt like cards",
        {"torch.tensor([b, s, d + d_model // n_heads * h])": "b, s, d * n_heads + h"},
        "dealt out like cards",
    ),
    (
        "steps of n_heads",
        {"torch.tensor([b, s, d + d_model // n_heads * h])": "b, s, h * n_heads + d"},
        "You step n_heads columns from one head to the next",
    ),
    (
        "the head as the token",
        {"torch.tensor([b, s, d + d_model // n_heads * h])": "b, h, s * (d_model // n_heads) + d"},
        "the token depends on the head",
    ),
    (
        "the head forgotten",
        {"torch.tensor([b, s, d + d_model // n_heads * h])": "b, s, d"},
        "Each of your heads begins at column 0",
    ),
    (
        "token and column swapped",
        {"torch.tensor([b, s, d + d_model // n_heads * h])": "[b, h * d_model // n_heads + d, s]"},
        "in another order: x has the axes batch, token, column",
    ),
    (
        "nothing returned",
        {
            "return torch.tensor([b, s, d + d_model // n_heads * h])": "place = b, s, h * d_model // n_heads + d"
        },
        "Expected: three ints, an index in x",
    ),
    (
        "a float as an index",
        {"torch.tensor([b, s, d + d_model // n_heads * h])": "b, s, h * (d_model / n_heads) + d"},
        "`/` makes a float",
    ),
    (
        "always sentence 0",
        {
            "origin": """def origin(index, d_model, n_heads):
    _, h, s, d = index
    batch = 0
    return batch, s, h * (d_model // n_heads) + d"""
        },
        "In all of your answers the sentence is 0.",
    ),
    (
        "three blocks",
        {
            "unpack": """def unpack(fused, n_heads):
    from attention import split_heads

    return torch.stack([split_heads(part, n_heads) for part in fused.chunk(3, dim=-1)])"""
        },
        "You cut the row into three blocks",
    ),
    (
        "viewed straight",
        {
            """cut = fused.view(batch, seq, n_heads, 3, width // (3 * n_heads))
    return cut.permute(3, 0, 2, 1, 4""": "return fused.view(3, batch, n_heads, seq, -1"
        },
        "a `view` straight to the final shape",
    ),
    (
        "heads taken out of the tokens",
        {
            """cut = fused.view(batch, seq, n_heads, 3, width // (3 * n_heads))
    return cut.permute(3, 0, 2, 1""": "return fused.view(batch, n_heads, seq, 3, -1).permute(3, 0, 1, 2"
        },
        "You take the heads out of the tokens",
    ),
    (
        "every third number",
        {
            """cut = fused.view(batch, seq, n_heads, 3, width // (3 * n_heads))
    return cut.permute(3, 0, 2, 1, 4""": "return fused.view(batch, seq, n_heads, -1, 3).permute(4, 0, 2, 1, 3"
        },
        "You take every third number of a head",
    ),
    (
        "heads not moved",
        {
            """cut = fused.view(batch, seq, n_heads, 3, width // (3 * n_heads))
    return cut.permute(3, 0, 2, 1""": "return fused.view(batch, seq, n_heads, 3, -1).permute(3, 0, 1, 2"
        },
        "Heads and tokens have not changed places",
    ),
    (
        "the batch in front",
        {
            """cut = fused.view(batch, seq, n_heads, 3, width // (3 * n_heads))
    return cut.permute(3, 0""": "return fused.view(batch, seq, n_heads, 3, -1).permute(0, 3"
        },
        "The batch is in front of the three",
    ),
    (
        "a tuple of three",
        {
            """cut = fused.view(batch, seq, n_heads, 3, width // (3 * n_heads))
    return cut.permute(3, 0, 2, 1, 4""": "return fused.view(batch, seq, n_heads, 3, -1).transpose(1, 2).unbind(3"
        },
        "`torch.stack` joins several tensors along a new axis",
    ),
    (
        "the colleague's merge",
        {"transpose(1, 2": "permute(0, 2, 3, 1"},
        "shuffled into each other like cards",
    ),
    (
        "through lists",
        {
            "return x.transpose(1, 2).reshape(batch, seq, heads * d_key": """rows = [
        [sum((x[b, h, s].tolist() for h in range(heads)), []) for s in range(seq)]
        for b in range(batch)
    ]
    return torch.tensor(rows"""
        },
        "no gradient goes back through them",
    ),
    (
        "one row for each head",
        {".unflatten(0, (n_heads, -1))[keep].flatten(0, 1)": "[keep]"},
        "You have taken one row for each head",
    ),
    (
        "columns",
        {
            "return w_o.unflatten(0, (n_heads, -1))[keep].flatten(0,": """d_key = w_o.shape[0] // n_heads
    return torch.cat([w_o[:, h * d_key : (h + 1) * d_key] for h in keep], dim="""
        },
        "You have taken columns of W_o",
    ),
    (
        "every n_heads-th row",
        {
            "w_o.unflatten(0, (n_heads, -1))[keep].flatten(0, 1": "torch.cat([w_o[h::n_heads] for h in keep]"
        },
        "You have taken every n_heads-th row",
    ),
    (
        "sorted",
        {
            "return w_o.unflatten(0, (n_heads, -1))[keep].flatten(0, 1": """blocks = w_o.view(n_heads, -1, w_o.shape[1])
    return torch.cat([blocks[h] for h in range(n_heads) if h in keep]"""
        },
        "in another order: the heads are merged in the order of `keep`",
    ),
    (
        "the removed heads",
        {
            "return w_o.unflatten(0, (n_heads, -1))[keep].flatten(0, 1": """blocks = w_o.view(n_heads, -1, w_o.shape[1])
    return torch.cat([blocks[h] for h in range(n_heads) if h not in keep]"""
        },
        "the rows of the heads that were removed",
    ),
    (
        "zeros instead of fewer rows",
        {
            "return w_o.unflatten(0, (n_heads, -1))[keep].flatten(0, 1": """smaller = w_o.clone().view(n_heads, -1, w_o.shape[1])
    for h in range(n_heads):
        if h not in keep:
            smaller[h] = 0.0
    return smaller.view_as(w_o"""
        },
        "The rows of removed heads are 0 but still there",
    ),
    (
        "zeros written into the weights",
        {
            "return w_o.unflatten(0, (n_heads, -1))[keep].flatten(0, 1": """blocks = w_o.view(n_heads, -1, w_o.shape[1])
    for h in range(n_heads):
        if h not in keep:
            blocks[h] = 0.0
    return torch.cat([blocks[h] for h in keep]"""
        },
        "An input is changed in place",
    ),
]

RIGHT = [
    (
        "looked up in a small split",
        {
            "return torch.tensor([b, s, d + d_model // n_heads * h])": """columns = torch.arange(d_model).view(n_heads, -1)
    return [b, s, int(columns[h, d])]"""
        },
    ),
    (
        "by slices",
        {
            "unpack": """def unpack(fused, n_heads):
    parts = fused.chunk(3 * n_heads, dim=-1)  # q, k, v of head 0, then of head 1 …
    return torch.stack([torch.stack(parts[i::3], dim=1) for i in range(3)])"""
        },
    ),
    (
        "heads first, then the three",
        {
            "unpack": """def unpack(fused, n_heads):
    heads = fused.unflatten(-1, (n_heads, -1)).transpose(1, 2)
    return torch.stack(heads.chunk(3, dim=-1)).double()"""
        },
    ),
    (
        "cat",
        {
            "merge-heads": """def merge_heads(x):
    return torch.cat(x.unbind(dim=1), dim=-1)"""
        },
    ),
    (
        "written head by head",
        {
            "merge-heads": """def merge_heads(x):
    batch, heads, seq, d_key = x.shape
    merged = torch.zeros(batch, seq, heads * d_key)
    for h in range(heads):
        merged[:, :, h * d_key : (h + 1) * d_key] = x[:, h]
    return merged"""
        },
    ),
    (
        "by index",
        {
            "return w_o.unflatten(0, (n_heads, -1))[keep].flatten(0, 1)": """d_key = w_o.shape[0] // n_heads
    rows = torch.tensor(keep)[:, None] * d_key + torch.arange(d_key)
    return w_o[rows.flatten()]"""
        },
    ),
]
