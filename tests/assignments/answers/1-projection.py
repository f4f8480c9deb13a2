"""Answers to assignment 1: mistakes that must be named, and right answers written otherwise."""

from tests.assignments.submissions import Mistake, Right

MISTAKES = [
    Mistake(
        "w transposed",
        cell="project",
        code="""
def project(x, w, b=None):
    return x @ w.T if b is None else x @ w.T + b
""",
        says="This is x times w transposed",
    ),
    Mistake(
        "no bias at all",
        cell="project",
        code="""
def project(x, w, b=None):
    return x @ w
""",
        says="The bias is missing",
    ),
    Mistake(
        "asks a tensor for its truth",
        cell="project",
        code="""
def project(x, w, b=None):
    y = x @ w
    if b:
        y = y + b
    return y
""",
        says="`if b:` asks a whole tensor whether it is true",
    ),
    Mistake(
        "a layer of its own",
        cell="project",
        code="""
def project(x, w, b=None):
    return torch.nn.Linear(w.shape[0], w.shape[1])(x)
""",
        says="make no `nn.Linear` inside",
    ),
    Mistake(
        "stored matrix not transposed",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    part = weight.chunk(3)[which]
    y = x @ part
    return y if bias is None else y + bias.chunk(3)[which]
""",
        says="The matrix is not transposed",
    ),
    Mistake(
        "every third row",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    y = x @ weight[which::3].T
    return y if bias is None else y + bias[which::3]
""",
        says="You take every third row",
    ),
    Mistake(
        "keys and values swapped",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    v, k, q = weight.chunk(3)
    b_v, b_k, b_q = (0, 0, 0) if bias is None else bias.chunk(3)
    return x @ [q, k, v][which].T + [b_q, b_k, b_v][which]
""",
        says="The thirds are in the wrong order",
    ),
    Mistake(
        "always the queries",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    d_model = weight.shape[0] // 3
    return torch.nn.functional.linear(
        x, weight[:d_model], None if bias is None else bias[:d_model]
    )
""",
        says="These are the queries, whatever `which` says",
    ),
    Mistake(
        "the bias of the queries for all",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    d_model = weight.shape[0] // 3
    rows = slice(which * d_model, (which + 1) * d_model)
    y = x @ weight[rows].T
    return y if bias is None else y + bias[:d_model]
""",
        says="the bias is that of the queries",
    ),
    Mistake(
        "not cut",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    return torch.nn.functional.linear(x, weight, bias)
""",
        says="queries, keys and values side by side",
    ),
    Mistake(
        "a file without a bias forgotten",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    return x @ weight.chunk(3)[which].T + bias.chunk(3)[which]
""",
        says="is None, and there is nothing to add",
    ),
    Mistake(
        "the new token in front",
        cell="with-one-more",
        code="""
def with_one_more(keys, new, w, b):
    return torch.cat([(new @ w + b).unsqueeze(1), keys], dim=1)
""",
        says="The new token stands first",
    ),
    Mistake(
        "all keys projected again",
        cell="with-one-more",
        code="""
def with_one_more(keys, new, w, b):
    return torch.cat([keys, new.unsqueeze(1)], dim=1) @ w + b
""",
        says="projected a second time",
    ),
    Mistake(
        "the last key overwritten",
        cell="with-one-more",
        code="""
def with_one_more(keys, new, w, b):
    keys = keys.clone()
    keys[:, -1] = new @ w + b
    return keys
""",
        says="has taken the place of the last one",
    ),
    Mistake(
        "the keys written over in place",
        cell="with-one-more",
        code="""
def with_one_more(keys, new, w, b):
    keys[:, -1] = new @ w + b
    return keys
""",
        says="An input is changed in place",
    ),
    Mistake(
        "the new token as it is",
        cell="with-one-more",
        code="""
def with_one_more(keys, new, w, b):
    return torch.cat([keys, new[:, None]], dim=1)
""",
        says="a row of X and no key",
    ),
    Mistake(
        "the new key without its bias",
        cell="with-one-more",
        code="""
def with_one_more(keys, new, w, b):
    return torch.cat([keys, (new @ w)[:, None]], dim=1)
""",
        says="The new key lacks the bias",
    ),
    Mistake(
        "joined along the columns",
        cell="with-one-more",
        code="""def with_one_more(keys, new, w, b):
    return torch.cat([keys, (new @ w + b)[:, None]], dim=2)
""",
        says="A sentence grows along the axis of its tokens",
    ),
    Mistake(
        "joined without an axis of tokens",
        cell="with-one-more",
        code="""def with_one_more(keys, new, w, b):
    return torch.cat([keys, new @ w + b], dim=1)
""",
        says="gives it an axis of tokens",
    ),
    Mistake(
        "counted for each head",
        cell="count-parameters",
        code="""
def count_parameters(d_model, d_image, n_heads, bias):
    return n_heads * (d_model**2 + 2 * d_image * d_model + 3 * d_model * bias)
""",
        says="Your number changes with the number of heads",
    ),
    Mistake(
        "all three from words",
        cell="count-parameters",
        code="""
def count_parameters(d_model, d_image, n_heads, bias):
    return 3 * d_model**2 + (3 * d_model if bias else 0)
""",
        says="Your number does not depend on d_image",
    ),
    Mistake(
        "biases as wide as the input",
        cell="count-parameters",
        code="""
def count_parameters(d_model, d_image, n_heads, bias):
    return d_model**2 + 2 * d_image * d_model + (d_model + 2 * d_image) * bias
""",
        says="A bias is as wide as what comes out",
    ),
    Mistake(
        "biases always",
        cell="count-parameters",
        code="""
def count_parameters(d_model, d_image, n_heads, bias):
    return d_model**2 + 2 * d_image * d_model + 3 * d_model
""",
        says="as many with biases as without",
    ),
    Mistake(
        "keys and values of one matrix",
        cell="count-parameters",
        code="""
def count_parameters(d_model, d_image, n_heads, bias):
    return d_model**2 + d_image * d_model + 3 * d_model * bias
""",
        says="One of your projections reads patches",
    ),
    Mistake(
        "the output projection too",
        cell="count-parameters",
        code="""
def count_parameters(d_model, d_image, n_heads, bias):
    return 2 * d_model**2 + 2 * d_image * d_model + 4 * d_model * bias
""",
        says="You have counted the output projection too",
    ),
    Mistake(
        "the same change to the keys",
        cell="new-w-k",
        code="""
def new_w_k(w_k, r):
    return w_k @ r
""",
        says="the same change to the keys",
    ),
    Mistake(
        "the inverse not transposed",
        cell="new-w-k",
        code="""
def new_w_k(w_k, r):
    return w_k @ torch.linalg.inv(r)
""",
        says="The inverse is right, and its transpose is missing",
    ),
    Mistake(
        "nothing done",
        cell="new-w-k",
        code="""
def new_w_k(w_k, r):
    return w_k
""",
        says="W_k is unchanged",
    ),
    Mistake(
        "divided entry by entry",
        cell="new-w-k",
        code="""def new_w_k(w_k, r):
    return w_k / r
""",
        says="`/` divides entry by entry",
    ),
    Mistake(
        "the inverse from the left",
        cell="new-w-k",
        code="""def new_w_k(w_k, r):
    return torch.linalg.inv(r) @ w_k
""",
        says="W_k is multiplied from the left",
    ),
    Mistake(
        "the pseudo-inverse of W_k",
        cell="new-w-k",
        code="""def new_w_k(w_k, r):
    return torch.linalg.pinv(w_k)
""",
        says="This is the pseudo-inverse of W_k.",
    ),
]

RIGHT = [
    Right(
        "einsum",
        cell="project",
        code="""
def project(x, w, b=None):
    y = torch.einsum("bsi,io->bso", x, w)
    return y if b is None else y + b
""",
    ),
    Right(
        "float64 and a loop over tokens",
        cell="project",
        code="""
def project(x, w, b=None):
    rows = [x[:, s].double() @ w.double() for s in range(x.shape[1])]
    y = torch.stack(rows, dim=1)
    return y if b is None else y + b
""",
    ),
    Right(
        "all three, then one of them",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    return torch.nn.functional.linear(x, weight, bias).chunk(3, dim=-1)[which]
""",
    ),
    Right(
        "einsum on a matrix with a third axis",
        cell="project-from",
        code="""
def project_from(x, weight, bias, which):
    w = weight.unflatten(0, (3, -1))[which]
    y = torch.einsum("bsi,oi->bso", x, w)
    if bias is not None:
        y = y + bias.unflatten(0, (3, -1))[which]
    return y
""",
    ),
    Right(
        "room made first",
        cell="with-one-more",
        code="""
def with_one_more(keys, new, w, b):
    batch, seq, d_model = keys.shape
    longer = torch.empty(batch, seq + 1, d_model)
    longer[:, :seq] = keys
    for i in range(batch):
        longer[i, seq] = new[i] @ w + b
    return longer
""",
    ),
    Right(
        "counted in torch's layers",
        cell="count-parameters",
        code="""
def count_parameters(d_model, d_image, n_heads, bias):
    layers = [torch.nn.Linear(d, d_model, bias=bias) for d in (d_model, d_image, d_image)]
    return torch.tensor(sum(p.numel() for layer in layers for p in layer.parameters()))
""",
    ),
    Right(
        "solve",
        cell="new-w-k",
        code="""
def new_w_k(w_k, r):
    return torch.linalg.solve(r.double(), w_k.T.double()).T
""",
    ),
]
