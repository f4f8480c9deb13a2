"""Answers to 1-projection: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "project": """def project(x, w, b=None):
    rows = [x[:, s].double() @ w.double() for s in range(x.shape[1])]
    y = torch.stack(rows, dim=1)
    return y if b is None else y + b""",
    "project-from": """def project_from(x, weight, bias, which):
    return torch.nn.functional.linear(x, weight, bias).chunk(3, dim=-1)[which]""",
    "new-w-k": """def new_w_k(w_k, r):
    return torch.linalg.solve(r.double(), w_k.T.double()).T""",
}

MISTAKES = [
    (
        "w transposed",
        {
            "project": """def project(x, w, b=None):
    return x @ w.T if b is None else x @ w.T + b"""
        },
        "This is x times w transposed",
    ),
    (
        "no bias at all",
        {
            "project": """def project(x, w, b=None):
    return x @ w"""
        },
        "The bias is missing",
    ),
    (
        "asks a tensor for its truth",
        {
            "project": """def project(x, w, b=None):
    y = x @ w
    if b:
        y = y + b
    return y"""
        },
        "`if b:` asks whether a whole tensor is true",
    ),
    (
        "a layer of its own",
        {
            "project": """def project(x, w, b=None):
    return torch.nn.Linear(w.shape[0], w.shape[1])(x)"""
        },
        "make no `nn.Linear` inside",
    ),
    (
        "stored matrix not transposed",
        {
            "return torch.nn.functional.linear(x, weight, bias).chunk(3, dim=-1": """part = weight.chunk(3)[which]
    y = x @ part
    return y if bias is None else y + bias.chunk(3"""
        },
        "The matrix is not transposed",
    ),
    (
        "every third row",
        {
            "return torch.nn.functional.linear(x, weight, bias).chunk(3, dim=-1)[which": """y = x @ weight[which::3].T
    return y if bias is None else y + bias[which::3"""
        },
        "You take every third row",
    ),
    (
        "keys and values swapped",
        {
            "return torch.nn.functional.linear(x, weight, bias).chunk(3, dim=-1)": """v, k, q = weight.chunk(3)
    b_v, b_k, b_q = (0, 0, 0) if bias is None else bias.chunk(3)
    return x @ [q, k, v][which].T + [b_q, b_k, b_v]"""
        },
        "The thirds are in the wrong order",
    ),
    (
        "always the queries",
        {
            "project-from": """def project_from(x, weight, bias, which):
    d_model = weight.shape[0] // 3
    return torch.nn.functional.linear(
        x, weight[:d_model], None if bias is None else bias[:d_model]
    )"""
        },
        "These are the queries, whatever `which` says",
    ),
    (
        "the bias of the queries for all",
        {
            "return torch.nn.functional.linear(x, weight, bias).chunk(3, dim=-1)[which": """d_model = weight.shape[0] // 3
    rows = slice(which * d_model, (which + 1) * d_model)
    y = x @ weight[rows].T
    return y if bias is None else y + bias[:d_model"""
        },
        "the bias is that of the queries",
    ),
    ("not cut", {").chunk(3, dim=-1)[which]": ")"}, "queries, keys and values side by side"),
    (
        "a file without a bias forgotten",
        {
            "torch.nn.functional.linear(x, weight, bias).chunk(3, dim=-1": "x @ weight.chunk(3)[which].T + bias.chunk(3"
        },
        "is None, and there is nothing to add",
    ),
    (
        "the new token in front",
        {
            "with-one-more": """def with_one_more(keys, new, w, b):
    return torch.cat([(new @ w + b).unsqueeze(1), keys], dim=1)"""
        },
        "The new token comes first",
    ),
    (
        "all keys projected again",
        {
            "with-one-more": """def with_one_more(keys, new, w, b):
    return torch.cat([keys, new.unsqueeze(1)], dim=1) @ w + b"""
        },
        "projected a second time",
    ),
    (
        "the last key overwritten",
        {
            "with-one-more": """def with_one_more(keys, new, w, b):
    keys = keys.clone()
    keys[:, -1] = new @ w + b
    return keys"""
        },
        "has taken the place of the last one",
    ),
    (
        "the keys written over in place",
        {
            "with-one-more": """def with_one_more(keys, new, w, b):
    keys[:, -1] = new @ w + b
    return keys"""
        },
        "An input is changed in place",
    ),
    (
        "the new token as it is",
        {
            "with-one-more": """def with_one_more(keys, new, w, b):
    return torch.cat([keys, new[:, None]], dim=1)"""
        },
        "a row of X and not a key",
    ),
    (
        "the new key without its bias",
        {
            "with-one-more": """def with_one_more(keys, new, w, b):
    return torch.cat([keys, (new @ w)[:, None]], dim=1)"""
        },
        "The new key lacks the bias",
    ),
    (
        "joined along the columns",
        {
            "with-one-more": """def with_one_more(keys, new, w, b):
    return torch.cat([keys, (new @ w + b)[:, None]], dim=2)"""
        },
        "A sentence grows along the axis of its tokens",
    ),
    ("joined without an axis of tokens", {"[:, None]": "@ w + b"}, "gives it an axis of tokens"),
    (
        "counted for each head",
        {
            "count-parameters": """def count_parameters(d_model, d_image, n_heads, bias):
    return n_heads * (d_model**2 + 2 * d_image * d_model + 3 * d_model * bias)"""
        },
        "Your number changes with the number of heads",
    ),
    (
        "all three from words",
        {
            "count-parameters": """def count_parameters(d_model, d_image, n_heads, bias):
    return 3 * d_model**2 + (3 * d_model if bias else 0)"""
        },
        "Your number does not depend on d_image",
    ),
    (
        "biases as wide as the input",
        {"3 * d_model": "(d_model + 2 * d_image) * bias"},
        "A bias is as wide as what comes out",
    ),
    (
        "biases always",
        {
            "count-parameters": """def count_parameters(d_model, d_image, n_heads, bias):
    return d_model**2 + 2 * d_image * d_model + 3 * d_model"""
        },
        "as many with biases as without",
    ),
    (
        "keys and values of one matrix",
        {
            "count-parameters": """def count_parameters(d_model, d_image, n_heads, bias):
    return d_model**2 + d_image * d_model + 3 * d_model * bias"""
        },
        "One of your projections reads patches",
    ),
    (
        "the output projection too",
        {
            "count-parameters": """def count_parameters(d_model, d_image, n_heads, bias):
    return 2 * d_model**2 + 2 * d_image * d_model + 4 * d_model * bias"""
        },
        "You have counted the output projection too",
    ),
    (
        "the same change to the keys",
        {"torch.linalg.solve(r.double(), w_k.T.double()).T": "w_k @ r"},
        "the same change to the keys",
    ),
    (
        "the inverse not transposed",
        {"torch.linalg.solve(r.double(), w_k.T.double()).T": "w_k @ torch.linalg.inv(r)"},
        "The inverse is right, but its transpose is missing",
    ),
    (
        "nothing done",
        {"torch.linalg.solve(r.double(), w_k.T.double()).T": "w_k"},
        "W_k is unchanged",
    ),
    (
        "divided entry by entry",
        {"torch.linalg.solve(r.double(), w_k.T.double()).T": "w_k / r"},
        "`/` divides entry by entry",
    ),
    (
        "the inverse from the left",
        {"solve(r.double(), w_k.T.double()).T": "inv(r) @ w_k"},
        "W_k is multiplied from the left",
    ),
    (
        "the pseudo-inverse of W_k",
        {"solve(r.double(), w_k.T.double()).T": "pinv(w_k)"},
        "This is the pseudo-inverse of W_k.",
    ),
]

RIGHT = [
    (
        "einsum",
        {
            """rows = [x[:, s].double() @ w.double() for s in range(x.shape[1])]
    y = torch.stack(rows, dim=1""": 'y = torch.einsum("bsi,io->bso", x, w'
        },
    ),
    (
        "einsum on a matrix with a third axis",
        {
            "project-from": """def project_from(x, weight, bias, which):
    w = weight.unflatten(0, (3, -1))[which]
    y = torch.einsum("bsi,oi->bso", x, w)
    if bias is not None:
        y = y + bias.unflatten(0, (3, -1))[which]
    return y"""
        },
    ),
    (
        "room made first",
        {
            "with-one-more": """def with_one_more(keys, new, w, b):
    batch, seq, d_model = keys.shape
    longer = torch.empty(batch, seq + 1, d_model)
    longer[:, :seq] = keys
    for i in range(batch):
        longer[i, seq] = new[i] @ w + b
    return longer"""
        },
    ),
    (
        "counted in torch's layers",
        {
            "count-parameters": """def count_parameters(d_model, d_image, n_heads, bias):
    layers = [torch.nn.Linear(d, d_model, bias=bias) for d in (d_model, d_image, d_image)]
    return torch.tensor(sum(p.numel() for layer in layers for p in layer.parameters()))"""
        },
    ),
]
