"""Right answers, written in other ways than the book's, pass."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import attention
from attention import BahdanauDecoder, checks

pytestmark = pytest.mark.usefixtures("as_a_reader")


def pattern(length, d_model):
    return attention.SinusoidalPositionalEncoding(d_model, length).table.double()


def step_by_search(k, d_model):
    """Found from the pattern itself, without a formula: what takes each row to the one k on."""
    pe = pattern(20_000 + abs(k), d_model)
    before, after = (pe[:-k], pe[k:]) if k > 0 else (pe[-k:], pe[:k])
    return torch.linalg.lstsq(before, after).solution.T


def step_by_complex_numbers(k, d_model):
    turn = torch.exp(-1j * k / 10000 ** (torch.arange(0, d_model, 2).double() / d_model))
    columns = torch.view_as_complex(torch.eye(d_model).double().unflatten(1, (-1, 2)))
    return torch.view_as_real(columns * turn).flatten(1).T


def step_entry_by_entry(k, d_model):
    matrix = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = k * math.exp(-math.log(10000) * i / d_model)
        matrix[i, i], matrix[i, i + 1] = math.cos(a), math.sin(a)
        matrix[i + 1, i], matrix[i + 1, i + 1] = -math.sin(a), math.cos(a)
    return matrix


STEPS = {
    "entry by entry": step_entry_by_entry,
    "complex numbers": step_by_complex_numbers,
    "by search": step_by_search,
    "a power": lambda k, d: torch.linalg.matrix_power(step_entry_by_entry(1, d).double(), k),
    "the transpose of a step back": lambda k, d: step_entry_by_entry(-k, d).T,
}


@pytest.mark.parametrize("d_model", [2, 6, 8])
@pytest.mark.parametrize("k", [-3, 0, 1, 7])
def test_the_right_step_takes_every_position_of_the_book_to_the_one_k_on(k, d_model):
    pe, start = pattern(300, d_model), 10
    matrix = checks.step_matrix.step_matrix(k, d_model).double()
    moved = pe[start:200] @ matrix.T
    torch.testing.assert_close(moved, pe[start + k : 200 + k], atol=1e-5, rtol=0)


def projection_loops(x, w, b=None):
    out = torch.zeros(*x.shape[:2], w.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for n in range(w.shape[1]):
                out[i, j, n] = (x[i, j] * w[:, n]).sum() + (0 if b is None else b[n])
    return out


PROJECTIONS = {
    "matmul": lambda x, w, b=None: torch.matmul(x, w) + (0 if b is None else b),
    "linear": lambda x, w, b=None: F.linear(x, w.T, b),
    "einsum": lambda x, w, b=None: torch.einsum("bsm,mn->bsn", x, w) + (0 if b is None else b),
    "loops": projection_loops,
    "double": lambda x, w, b=None: F.linear(
        x.double(), w.T.double(), None if b is None else b.double()
    ).float(),
    "flattened": lambda x, w, b=None: (x.flatten(0, 1) @ w + (0 if b is None else b)).view(
        *x.shape[:2], -1
    ),
    "not contiguous": lambda x, w, b=None: (
        w.T @ x.mT + (0 if b is None else b[:, None])
    ).transpose(1, 2),
}


def hands(d_model, steps):
    """x @ w is x turned back by so many steps."""
    angle = steps / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    w = torch.diag(angle.cos().repeat_interleave(2))
    w[range(0, d_model, 2), range(1, d_model, 2)] = angle.sin()
    w[range(1, d_model, 2), range(0, d_model, 2)] = -angle.sin()
    return w


def fitted(d_model):
    """The best matrix from each encoding to the one before it, with no thought of hands."""
    pe = attention.SinusoidalPositionalEncoding(d_model).table.double()
    return 500 * torch.linalg.lstsq(pe[1:], pe[:-1]).solution, torch.eye(d_model).double()


LOOK_BACKS = {
    "queries back": lambda d: (500 * hands(d, 1), torch.eye(d)),
    "keys forward": lambda d: (torch.eye(d), 500 * hands(d, -1)),
    "half a step each": lambda d: (25 * hands(d, 0.5), 25 * hands(d, -0.5)),
    "three back and two": lambda d: (25 * hands(d, 3), 25 * hands(d, 2)),
    "fitted": fitted,
    "one and minus one, twice": lambda d: (-500 * hands(d, 1), -torch.eye(d)),
    "the slow hands louder": lambda d: (
        500 * torch.diag(torch.arange(d) // 2 + 1.0) @ hands(d, 1),
        torch.eye(d),
    ),
    "as a list": lambda d: [500 * hands(d, 1), torch.eye(d)],
}


def split_loops(x, n_heads):
    batch, seq, d_model = x.shape
    d_key = d_model // n_heads
    heads = torch.empty(batch, n_heads, seq, d_key)
    for h in range(n_heads):
        for c in range(d_key):
            heads[:, h, :, c] = x[:, :, h * d_key + c]
    return heads


SPLITS = {
    "book": attention.split_heads,
    "unflatten": lambda x, n: x.unflatten(-1, (n, -1)).movedim(2, 1),
    "reshape": lambda x, n: x.reshape(*x.shape[:2], n, -1).permute(0, 2, 1, 3).contiguous(),
    "chunk": lambda x, n: torch.stack(x.chunk(n, dim=-1), dim=1),
    "einsum": lambda x, n: torch.einsum("bshd->bhsd", x.unflatten(2, (n, -1))),
    "transposed first": lambda x, n: x.mT.unflatten(1, (n, -1)).mT,
    "loops": split_loops,
    "double": lambda x, n: attention.split_heads(x.double(), n).float(),
}

MERGES = {
    "book": attention.merge_heads,
    "contiguous": lambda x: x.transpose(1, 2).contiguous().view(len(x), x.shape[2], -1),
    "cat": lambda x: torch.cat(x.unbind(1), dim=-1),
    "einsum": lambda x: torch.einsum("bhsd->bshd", x).flatten(2),
    "permute": lambda x: x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1),
    "list": lambda x: torch.cat([x[:, h] for h in range(x.shape[1])], 2),
    "not contiguous": lambda x: x.permute(1, 3, 0, 2).flatten(0, 1).permute(1, 2, 0),
}


def attention_loops(query, key, value, mask=None):
    output, weights = [], []
    mask = None if mask is None else mask.expand(*query.shape[:3], key.shape[2])
    for i in range(query.shape[0]):
        for h in range(query.shape[1]):
            scores = query[i, h] @ key[i, h].T / math.sqrt(query.shape[-1])
            if mask is not None:
                scores[~mask[i, h]] = -float("inf")
            weights.append(torch.softmax(scores, dim=-1))
            output.append(weights[-1] @ value[i, h])
    shape = query.shape[:2]
    return torch.stack(output).unflatten(0, shape), torch.stack(weights).unflatten(0, shape)


def attention_by_hand(query, key, value, mask=None):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(-1e9))
    scores = scores - scores.max(dim=-1, keepdim=True).values
    weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value), weights


def attention_additive(query, key, value, mask=None):
    scores = (query * query.shape[-1] ** -0.25) @ (key * key.shape[-1] ** -0.25).mT
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    return scores.softmax(-1) @ value


def attention_double(query, key, value, mask=None):
    inputs = (x.double() for x in (query, key, value))
    output, weights = attention.scaled_dot_product_attention(*inputs, mask)
    return output.float(), weights.float()


ATTENTIONS = {
    "book": attention.scaled_dot_product_attention,
    "torch": F.scaled_dot_product_attention,
    "loops": attention_loops,
    "by hand": attention_by_hand,
    "additive, output alone": attention_additive,
    "double": attention_double,
    "no weights": lambda q, k, v, mask=None: (attention_loops(q, k, v, mask)[0], None),
}

WEIGHTS = {
    "book": lambda q, k: attention.scaled_dot_product_attention(q, k, k)[1],
    "by hand": lambda q, k: attention_by_hand(q, k, k)[1],
    "loops": lambda q, k: attention_loops(q, k, k)[1],
    "query by query": lambda q, k: torch.stack(
        [
            (row[..., None, :] * k).sum(-1).div(math.sqrt(k.shape[-1])).softmax(-1)
            for row in q.unbind(2)
        ],
        dim=2,
    ),
    "powers of 2": lambda q, k: torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1).log2().exp2(),
    "log of the sum": lambda q, k: (
        (s := q @ k.mT / k.shape[-1] ** 0.5) - s.logsumexp(-1, keepdim=True)
    ).exp(),
    "torch": lambda q, k: F.scaled_dot_product_attention(
        q, k, torch.eye(k.shape[2]).expand(*k.shape[:2], -1, -1)
    ),
    "double": lambda q, k: attention_double(q, k, k)[1],
}


def places_apart(words, n_positions, *, asks, tells, size=10.0):
    """Queries ask for what stands `asks` places on, keys tell what stands `tells` places on."""
    d_model, d_key = len(words) + n_positions, n_positions + 8
    w_q, w_k = torch.zeros(d_model, d_key), torch.zeros(d_model, d_key)
    for i in range(n_positions):
        w_q[len(words) + i, 4 + i + asks] = size
        w_k[len(words) + i, 4 + i + tells] = size
    return w_q, w_k


def by_angles(words, n_positions):
    """Places as points on a circle: the query is the place two steps further."""
    angle = torch.arange(n_positions) * 2 * math.pi / n_positions
    w_q, w_k = torch.zeros(2, len(words) + n_positions, 2)
    w_k[len(words) :] = torch.stack([angle.cos(), angle.sin()], dim=1)
    w_q[len(words) :] = 100 * w_k[len(words) :].roll(-2, dims=0)
    return w_q, w_k


def verbs_alone(words, n_positions):
    """Only the verbs' places ask; every other word has a query of zero."""
    w_q, w_k = places_apart(words, n_positions, asks=2, tells=0)
    w_q[len(words) + 6 :] = 0
    return w_q, w_k


FIND_BYS = {
    "queries forward": lambda *sizes: places_apart(*sizes, asks=2, tells=0),
    "keys back": lambda *sizes: places_apart(*sizes, asks=0, tells=-2),
    "a step each": lambda *sizes: places_apart(*sizes, asks=1, tells=-1),
    "both negative": lambda *sizes: places_apart(*sizes, asks=2, tells=0, size=-10.0),
    "very large": lambda *sizes: places_apart(*sizes, asks=2, tells=0, size=1e4),
    "barely enough": lambda *sizes: places_apart(*sizes, asks=2, tells=0, size=4.5),
    "on a circle": by_angles,
    "verbs alone": verbs_alone,
    "integers": lambda *sizes: tuple(w.long() for w in places_apart(*sizes, asks=2, tells=0)),
}

PADDINGS = {
    "book": attention.padding_mask,
    "unsqueeze": lambda ids, pad: (ids != pad).unsqueeze(1).unsqueeze(2),
    "inverse": lambda ids, pad: ~ids.eq(pad).view(len(ids), 1, 1, -1),
    "where": lambda ids, pad: torch.where(ids == pad, 0, 1).bool()[:, None, None],
    "list": lambda ids, pad: torch.tensor([[[[i != pad for i in row]]] for row in ids.tolist()]),
    "not contiguous": lambda ids, pad: (pad != ids.T).T[:, None, None],
}


def causal_loops(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    mask = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    for i in range(n_queries):
        for j in range(n_keys):
            mask[i, j] = j - (n_keys - n_queries) <= i
    return mask


CAUSALS = {
    "book": attention.causal_mask,
    "loops": causal_loops,
    "tril": lambda q, k=None: torch.ones(q, k or q).tril((k or q) - q).bool(),
    "triu": lambda q, k=None: ~torch.ones(q, k or q, dtype=torch.bool).triu((k or q) - q + 1),
    "comparison": lambda q, k=None: (
        torch.arange(k or q)[None] <= torch.arange(q)[:, None] + (k or q) - q
    ),
    "list": lambda q, k=None: torch.tensor(
        [[j <= i + (k or q) - q for j in range(k or q)] for i in range(q)]
    ),
}


class Mine(nn.Module):
    """A module in plain torch, as chapter 7 builds it."""

    def __init__(self, d_model, n_heads, bias=True):
        super().__init__()
        self.n_heads = n_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def projected(self, query, key, value):
        return self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))

    def forward(self, query, key, value, mask=None):
        q, k, v = self.projected(query, key, value)
        output, weights = attention_by_hand(q, k, v, mask)
        return self.w_o(output.transpose(1, 2).flatten(2)), weights


class OutputAlone(Mine):
    def forward(self, query, key, value, mask=None):
        heads = F.scaled_dot_product_attention(*self.projected(query, key, value), mask)
        return self.w_o(heads.transpose(1, 2).flatten(2))


class WithoutBias(Mine):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads, bias=False)


class WithDropout(Mine):
    def __init__(self, d_model, n_heads, dropout=0.1):
        super().__init__(d_model, n_heads)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.projected(query, key, value)
        weights = self.drop(attention_by_hand(q, k, v, mask)[1])
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights


class ProductsByHand(Mine):
    def forward(self, query, key, value, mask=None):
        def per_head(linear, x):
            weight = linear.weight.T.unflatten(1, (self.n_heads, -1))
            bias = linear.bias.unflatten(0, (self.n_heads, 1, -1))
            return torch.einsum("bsm,mhd->bhsd", x, weight) + bias

        q, k, v = per_head(self.w_q, query), per_head(self.w_k, key), per_head(self.w_v, value)
        output, weights = attention_loops(q, k, v, mask)
        w_o = self.w_o.weight.T.unflatten(0, (self.n_heads, -1))
        return torch.einsum("bhqd,hdm->bqm", output, w_o) + self.w_o.bias, weights


class HeadByHead(Mine):
    def forward(self, query, key, value, mask=None):
        d_key = query.shape[-1] // self.n_heads
        if mask is not None:
            mask = mask.expand(len(query), 1, query.shape[1], key.shape[1])[:, 0]
        heads = []
        for h in range(self.n_heads):
            columns = slice(h * d_key, (h + 1) * d_key)
            q, k, v = (
                F.linear(x, layer.weight[columns], layer.bias[columns])
                for layer, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
            )
            scores = q @ k.mT / math.sqrt(d_key)
            if mask is not None:
                scores = scores.masked_fill(~mask, -math.inf)
            heads.append(scores.softmax(-1) @ v)
        return self.w_o(torch.cat(heads, -1)), None


MODULES = {
    "book": attention.MultiHeadAttention,
    "plain": Mine,
    "output alone": OutputAlone,
    "without bias": WithoutBias,
    "with dropout": WithDropout,
    "products by hand": ProductsByHand,
    "head by head": HeadByHead,
}


def mean_weight_loops(weights, query, key):
    batch, heads = weights.shape[:2]
    means = torch.zeros(heads)
    for i in range(batch):
        for head in range(heads):
            means[head] += weights[i, head, query[i], key[i]] / batch
    return means


def mean_weight_by_products(weights, query, key):
    asks = F.one_hot(query, weights.shape[2]).float()
    looked_at = F.one_hot(key, weights.shape[3]).float()
    return torch.einsum("bhqk,bq,bk->h", weights, asks, looked_at) / len(weights)


def mean_weight_by_gather(weights, query, key):
    rows = torch.stack([w[:, q] for w, q in zip(weights, query, strict=True)])
    return rows.gather(2, key[:, None, None].expand(-1, rows.shape[1], 1)).mean(0)[:, 0]


MEANS = {
    "loops": mean_weight_loops,
    "products": mean_weight_by_products,
    "gather": mean_weight_by_gather,
}


def trained_by_gather(model, optimiser, batches):
    losses = []
    for token_ids, verb, who in batches:
        logits = model.train()(token_ids)
        shares = logits.log_softmax(dim=-1)  # (batch, seq, vocab_size)
        places = verb[:, None, None].expand(-1, 1, shares.shape[-1])
        loss = -shares.gather(1, places)[:, 0].gather(1, who[:, None]).mean()
        optimiser.zero_grad(set_to_none=False)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def trained_and_cleared_at_the_end(model, optimiser, batches):
    torch.manual_seed(0)  # as the chapter's `train` begins
    model.train()
    batches = list(batches)
    losses = torch.zeros(len(batches))
    for i, (token_ids, verb, who) in enumerate(batches):
        at_verb = F.one_hot(verb, token_ids.shape[1]).bool()
        loss = F.nll_loss(model(token_ids)[at_verb].log_softmax(-1), who)
        loss.backward()
        optimiser.step()
        model.zero_grad()
        losses[i] = loss.item()
    model.eval()
    return losses


def trained_by_a_closure(model, optimiser, batches):
    model.train()

    def step(token_ids, verb, who):
        def closure():
            optimiser.zero_grad()
            loss = F.cross_entropy(model(token_ids)[range(len(verb)), verb], who)
            loss.backward()
            return loss

        return optimiser.step(closure).item()

    return torch.tensor([step(*batch) for batch in batches])


LOOPS = {
    "gather": trained_by_gather,
    "cleared at the end": trained_and_cleared_at_the_end,
    "a closure": trained_by_a_closure,
}


def greedy_from_the_last_pass(logits_of, start, end, longest):
    signs = torch.tensor([start])
    for _ in range(longest):
        likeliest = logits_of(signs).argmax(-1)  # causal: the earlier ones stay as they are
        if end in likeliest:
            break
        signs = torch.cat([torch.tensor([start]), likeliest])
    return likeliest


def greedy_by_recursion(logits_of, start, end, longest, before=()):
    best = logits_of(torch.tensor([start, *before]))[-1].topk(1).indices.item()
    if best == end or len(before) + 1 == longest:
        return torch.tensor([*before, best])
    return greedy_by_recursion(logits_of, start, end, longest, (*before, best))


GREEDY = {"last pass": greedy_from_the_last_pass, "recursion": greedy_by_recursion}


def rotate_by_complex_numbers(x, base=10000.0):
    theta = base ** (-torch.arange(0, x.shape[1], 2).double() / x.shape[1])
    turn = torch.exp(1j * torch.arange(len(x))[:, None] * theta)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2).float()


def rotate_by_matrices(x, base=10000.0):
    rows = []
    for m, row in enumerate(x):
        blocks = []
        for i in range(0, x.shape[1], 2):
            c, s = (f(m / base ** (i / x.shape[1])) for f in (math.cos, math.sin))
            blocks.append(torch.tensor([[c, -s], [s, c]]))
        rows.append(torch.block_diag(*blocks) @ row)
    return torch.stack(rows)


def rotate_as_the_paper_writes_it(x, base=10000.0):
    theta = base ** (-torch.arange(0, x.shape[1], 2) / x.shape[1])
    angle = (torch.arange(len(x))[:, None] * theta).repeat_interleave(2, dim=-1)
    other = torch.stack((-x[:, 1::2], x[:, 0::2]), dim=-1).flatten(1)
    return x * angle.cos() + other * angle.sin()


ROTATIONS = {
    "complex numbers": rotate_by_complex_numbers,
    "matrices": rotate_by_matrices,
    "equation 34": rotate_as_the_paper_writes_it,
    "the book's module": lambda x, base=10000.0: attention.Rotary(x.shape[1], base)(
        x[None, None], x[None, None]
    )[0][0, 0],
}


def step_counted(n, d_model, n_heads, d_ff):
    """Entry by entry, as the matrices and the rows are."""
    d_key = d_model // n_heads
    matrices = [torch.empty(d_model, d_model) for _ in "qkvo"]
    projections = sum(w.numel() for w in matrices)
    keys = values = torch.empty(n_heads, n, d_key)
    wide = torch.empty(d_ff, d_model).numel() + torch.empty(d_model, d_ff).numel()
    pairs = keys.numel() + values.numel()
    return torch.tensor([projections, pairs, wide, pairs])


STEP_COSTS = {
    "formulas": lambda n, d, h, f: torch.tensor([4 * d * d, 2 * n * d, 2 * d * f, 2 * n * d]),
    "by heads": lambda n, d, h, f: torch.tensor(
        [4 * d**2, h * 2 * n * (d // h), d * f + f * d, 2 * h * n * (d // h)]
    ),
    "counted": step_counted,
    "stacked": lambda n, d, h, f: torch.stack(
        [torch.tensor(x) for x in (4 * d**2, 2 * n * d, 2 * d * f, 2 * n * d)]
    ),
}


def pool_by_slices(weight, n_heads, n_kv_heads):
    """Group by group, head by head."""
    heads = weight.split(len(weight) // n_heads)
    group = n_heads // n_kv_heads
    means = [sum(heads[i : i + group]) / group for i in range(0, n_heads, group)]
    return torch.cat(means)


POOLS = {
    "slices": pool_by_slices,
    "einsum": lambda w, n, g: (
        torch.einsum("gijk->gjk", w.view(g, n // g, len(w) // n, -1)).flatten(0, 1) / (n // g)
    ),
    "a matrix of shares": lambda w, n, g: (
        torch.kron(torch.eye(g).repeat_interleave(n // g, dim=1) / (n // g), torch.eye(len(w) // n))
        @ w
    ),
}


def write_as_the_papers_do(state, key, value, beta):
    """S (I - β k kᵀ) + β v kᵀ, of the state with a row for each component of the value."""
    transposed, size = state.T, len(key)
    kept = torch.eye(size) - beta * torch.outer(key, key)
    return (transposed @ kept + beta * torch.outer(value, key)).T


def write_by_a_gradient(state, key, value, beta):
    """A step of size β against the gradient of ½ ‖kᵀS - v‖²."""
    start = state.clone().requires_grad_()
    loss = (key @ start - value).square().sum() / 2
    (grad,) = torch.autograd.grad(loss, start)
    return state - beta * grad


def write_as_the_module(state, key, value, beta):
    one = torch.full((1, 1, 1), beta)
    key, value, state = key[None, None, None], value[None, None, None], state[None, None]
    _, state = attention.gated_delta_rule_step(key, key, value, one, state=state)
    return state[0, 0]


WRITES = {
    "as the papers write it": write_as_the_papers_do,
    "a gradient": write_by_a_gradient,
    "the book's module": write_as_the_module,
}


def fields_by_walking(mask, n_layers):
    """From each token along what it sees, a set at a time."""
    reached = torch.zeros_like(mask)
    for token in range(len(mask)):
        known = {token}
        for _ in range(n_layers):
            known |= {key for query in known for key in mask[query].nonzero()[:, 0].tolist()}
        reached[token, list(known)] = True
    return reached


def fields_by_power(mask, n_layers):
    one_layer = mask.double() + torch.eye(len(mask))
    return torch.linalg.matrix_power(one_layer, n_layers).bool()


def fields_by_distance(mask, n_layers):
    distance = torch.where(mask, 1.0, math.inf).fill_diagonal_(0.0)
    for between in range(len(mask)):  # Floyd and Warshall
        through = distance[:, between, None] + distance[between]
        distance = torch.minimum(distance, through)
    return distance <= n_layers


FIELDS = {
    "walking": fields_by_walking,
    "a power": fields_by_power,
    "distances": fields_by_distance,
}


def share_by_loops(x, rotations):
    found = torch.zeros(len(x), len(x), dtype=torch.bool)
    for rotation in rotations:
        buckets = [max(range(2 * len(p)), key=[*p, *-p].__getitem__) for p in x @ rotation]
        found |= torch.tensor([[a == b for a in buckets] for b in buckets])
    return found


SHARES = {
    "loops": share_by_loops,
    "the smallest product": lambda x, r: (
        (b := torch.cat([x @ r, -x @ r], -1).argmin(-1))[:, None] == b[..., None]
    ).any(0),
    "vectors of length 1": lambda x, r: checks.share_bucket.share_bucket(
        torch.nn.functional.normalize(x, dim=-1), 3 * r
    ),
    "the book's module": lambda x, r: (
        (b := attention.lsh_buckets(x[None, None], r)[0, 0])[:, None] == b[..., None]
    ).any(0),
}


def join_by_logarithms(max_a, sum_a, out_a, max_b, sum_b, out_b):
    """Each part by its log-sum-exp, which a backward pass keeps."""
    logs = torch.stack((max_a + sum_a.log(), max_b + sum_b.log()))
    maximum, log = torch.maximum(max_a, max_b), logs.logsumexp(0)
    shares = (logs - log).exp().nan_to_num()[..., None]
    return maximum, (log - maximum).exp().nan_to_num(), shares[0] * out_a + shares[1] * out_b


def join_row_by_row(max_a, sum_a, out_a, max_b, sum_b, out_b):
    total, output = torch.zeros_like(sum_a), torch.zeros_like(out_a)
    for i in range(len(sum_a)):
        maximum = max(max_a[i].item(), max_b[i].item())
        for m, s, out in ((max_a, sum_a, out_a), (max_b, sum_b, out_b)):
            if s[i] > 0:
                part = s[i] * math.exp(m[i].item() - maximum)
                total[i], output[i] = total[i] + part, output[i] + part * out[i]
        if total[i] > 0:
            output[i] /= total[i]
    return torch.max(max_a, max_b), total, output


def join_as_one_row_of_two_keys(max_a, sum_a, out_a, max_b, sum_b, out_b):
    lowest = torch.finfo(max_a.dtype).min
    scores = torch.stack((max_a, max_b), dim=-1)
    maximum = scores.amax(-1)
    sums = (scores.clamp_min(lowest) - maximum.clamp_min(lowest)[:, None]).exp()
    sums = sums * torch.stack((sum_a, sum_b), dim=-1)
    total = sums.sum(-1)
    weights = sums / total.clamp_min(1e-30)[:, None]
    return maximum, total, (weights[..., None] * torch.stack((out_a, out_b), dim=1)).sum(1)


JOINS = {
    "logarithms": join_by_logarithms,
    "row by row": join_row_by_row,
    "two keys": join_as_one_row_of_two_keys,
}


def remove_by_masking(weights, values):
    """A key that a mask hides: softmax of the logarithms, which are scores up to a constant."""
    n_keys = weights.shape[-1]
    seen = ~torch.eye(n_keys, dtype=torch.bool)  # (removed, key)
    scores = weights.log()[..., None, :].masked_fill(~seen, -torch.inf)
    without = scores.softmax(-1) @ values[:, None]  # (heads, query, removed, d_value)
    change = torch.linalg.vector_norm(without - (weights @ values)[:, :, None], dim=-1)
    return change, (change.argmax(-1) == weights.argmax(-1)).float().mean(-1)


def remove_by_loops(weights, values):
    change = torch.zeros_like(weights)
    for h, head in enumerate(weights):
        for i, row in enumerate(head):
            for j in range(len(row)):
                left = row.clone()
                left[j] = 0.0
                change[h, i, j] = ((left / left.sum() - row) @ values[h]).norm()
    share = (change.sort(-1).indices[..., -1] == weights.sort(-1).indices[..., -1]).float()
    return change, share.mean(-1)


REMOVALS = {"masking": remove_by_masking, "loops": remove_by_loops}


def step_by_the_modules_decoder(state, previous, encoded, attention, gru, to_logits):
    decoder = SimpleNamespace(cell=gru, w_o=to_logits)
    return BahdanauDecoder.step(decoder, previous, state, partial(attention, key=encoded))


def step_by_equations(state, previous, encoded, attention, gru, to_logits):
    """From the parameters alone: additive attention, the gates of torch's GRU, three products."""
    pairs = F.linear(state, attention.w_q.weight)[:, None] + encoded @ attention.w_k.weight.T
    weights = (pairs.tanh() @ attention.v.weight[0]).softmax(-1)
    context = torch.einsum("bk,bkd->bd", weights, encoded)
    x = torch.hstack((previous, context))
    of_x = F.linear(x, gru.weight_ih, gru.bias_ih).chunk(3, 1)
    of_s = F.linear(state, gru.weight_hh, gru.bias_hh).chunk(3, 1)
    reset, update = ((a + b).sigmoid() for a, b in zip(of_x[:2], of_s[:2], strict=True))
    state = (1 - update) * (of_x[2] + reset * of_s[2]).tanh() + update * state
    sizes = [part.shape[1] for part in (state, context, previous)]
    parts = zip((state, context, previous), to_logits.weight.split(sizes, 1), strict=True)
    return sum(part @ w.T for part, w in parts) + to_logits.bias, weights, state


def step_by_sentences(state, previous, encoded, attention, gru, to_logits):
    rows = []
    for s, sign, letters in zip(state, previous, encoded, strict=True):
        _, weights = attention(s.view(1, 1, -1), letters[None], letters[None])
        context = sum(w * row for w, row in zip(weights[0, 0], letters, strict=True))
        s = gru(torch.cat([sign, context]), s)
        rows.append((to_logits(torch.cat([s, context, sign])), weights[0, 0], s))
    return tuple(torch.stack(part) for part in zip(*rows, strict=True))


DECODER_STEPS = {
    "the book's decoder": step_by_the_modules_decoder,
    "equations": step_by_equations,
    "sentence by sentence": step_by_sentences,
}


def rotary_with(turn):
    def function(q, k, v, n_heads, mask):
        q, k, v = (x.unflatten(-1, (n_heads, -1)).transpose(1, 2) for x in (q, k, v))
        output, weights = attention_by_hand(turn(q), turn(k), v, mask)
        return output.transpose(1, 2).flatten(2), weights

    return function


def by_complex_numbers(x):
    theta = 10000.0 ** (-torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])
    angle = torch.arange(x.shape[-2])[:, None] * theta
    units = torch.polar(torch.ones_like(angle), angle)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * units).flatten(-2).float()


def places_from_one(x):
    nothing = torch.zeros_like(x[:, :, :1])
    return by_complex_numbers(torch.cat((nothing, x), dim=2))[:, :, 1:]


def as_halves(x):
    """Turned in pairs of neighbours, and left with all first components in front."""
    turned = by_complex_numbers(x)
    return torch.cat((turned[..., 0::2], turned[..., 1::2]), dim=-1)


def rotary_with_the_module(q, k, v, n_heads, mask):
    q, k, v = (attention.split_heads(x, n_heads) for x in (q, k, v))
    q, k = attention.Rotary(q.shape[-1])(q, k)
    output, weights = attention.scaled_dot_product_attention(q, k, v, mask)
    return attention.merge_heads(output), weights


def rotary_by_distances(q, k, v, n_heads, mask):
    """No row is turned: every pair's score is a wave over the distance m − n."""
    q, k, v = (x.unflatten(-1, (n_heads, -1)).transpose(1, 2) for x in (q, k, v))
    seq, d_key = q.shape[2:]
    theta = 10000.0 ** (-torch.arange(0, d_key, 2) / d_key)
    place = torch.arange(seq)
    angle = (place[:, None] - place)[..., None] * theta  # (query, key, pairs)
    (a, b), (c, d) = ((x[..., 0::2], x[..., 1::2]) for x in (q[:, :, :, None], k[:, :, None]))
    waves = (a * c + b * d) * angle.cos() + (a * d - b * c) * angle.sin()
    scores = waves.sum(-1) / math.sqrt(d_key)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2), weights


ROTARIES = {
    "the book's module": rotary_with_the_module,
    "complex numbers": rotary_with(by_complex_numbers),
    "places from one": rotary_with(places_from_one),
    "left as halves": rotary_with(as_halves),
    "distances": rotary_by_distances,
}


def layer_of_torch(x, w, n_heads):
    """The functions that torch has for each part."""

    def linear(rows, name):
        return F.linear(rows, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(rows, name):
        return F.layer_norm(rows, rows.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])

    normed = norm(x, "self_attention_norm")
    q, k, v = (
        attention.split_heads(linear(normed, f"self_attention.{name}"), n_heads)
        for name in ("w_q", "w_k", "w_v")
    )
    attended = F.scaled_dot_product_attention(q, k, v)
    h = x + linear(attention.merge_heads(attended), "self_attention.w_o")
    hidden = F.relu(linear(norm(h, "feed_forward_norm"), "feed_forward.w_1"))
    return h + linear(hidden, "feed_forward.w_2")


def layer_of_the_book(x, w, n_heads):
    d_ff, d_model = w["feed_forward.w_1.weight"].shape
    layer = attention.EncoderLayer(d_model, n_heads, d_ff, norm_first=True)
    layer.load_state_dict(w)
    return layer(x)[0]


def layer_head_by_head(x, w, n_heads):
    """Each head's own rows of the stored matrices, and its own columns of w_o."""

    def norm(rows, name):
        rows = rows - rows.mean(-1, keepdim=True)
        rows = rows * (rows.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        return rows * w[f"{name}_norm.weight"] + w[f"{name}_norm.bias"]

    rows = norm(x, "self_attention")
    h = x + w["self_attention.w_o.bias"]
    for mine in torch.arange(x.shape[-1]).chunk(n_heads):
        q, k, v = (
            rows @ w[f"self_attention.{name}.weight"][mine].T
            + w[f"self_attention.{name}.bias"][mine]
            for name in ("w_q", "w_k", "w_v")
        )
        weights = torch.softmax(q @ k.mT / len(mine) ** 0.5, dim=-1)
        h = h + weights @ v @ w["self_attention.w_o.weight"][:, mine].T
    hidden = norm(h, "feed_forward") @ w["feed_forward.w_1.weight"].T + w["feed_forward.w_1.bias"]
    return h + hidden.clamp(min=0) @ w["feed_forward.w_2.weight"].T + w["feed_forward.w_2.bias"]


LAYERS = {
    "torch's functions": layer_of_torch,
    "the book's module": layer_of_the_book,
    "head by head": layer_head_by_head,
}

TOKEN, PLACE, COPY, ANSWER = (slice(32 * i, 32 * i + 32) for i in range(4))


def heads_of_square_matrices():
    """With as many columns as a row has, and the scaling in the queries."""
    eye = torch.eye(32)
    first, second = torch.zeros(2, 4, 128, 128)
    first[0, PLACE, PLACE] = 500 * eye.roll(-1, dims=1)  # place p asks for p - 1
    first[1, PLACE, PLACE] = first[2, TOKEN, TOKEN] = first[3, TOKEN, COPY] = eye
    second[0, TOKEN, COPY] = 500 * eye
    second[1, COPY, COPY] = second[2, TOKEN, TOKEN] = second[3, TOKEN, ANSWER] = eye
    return first.unbind(), second.unbind()


def heads_by_the_query():
    """Layer 0 finds the same token and hands over its place plus one; layer 1 goes there."""
    eye = torch.eye(32)

    def rows(block, what):
        w = torch.zeros(128, 32)
        w[block] = what
        return w

    first = [rows(TOKEN, 100 * eye), rows(TOKEN, eye), rows(PLACE, eye.roll(1, dims=1))]
    second = [rows(COPY, 300 * eye), rows(PLACE, eye), rows(TOKEN, eye)]
    return [*first, rows(COPY, eye).T], [*second, rows(ANSWER, eye).T]


def heads_through_the_answer():
    """The copy goes into the columns of the answer, where the answer is louder."""
    first, second = (list(head) for head in checks.two_heads.two_heads())
    first[3] = first[3].roll(32, dims=1)  # from COPY to ANSWER
    second[1] = second[1].roll(32, dims=0)
    second[3] = 3 * second[3]
    return [w.double() for w in first], tuple(second)


TWO_HEADS = {
    "square": heads_of_square_matrices,
    "by the query": heads_by_the_query,
    "through the answer": heads_through_the_answer,
}


def step_over_all_signs(model, letters, signs, pad_id):
    """All signs go in, and the last row of logits is not compared."""
    n = signs.shape[1]
    logits = model(letters, signs, torch.arange(n) <= torch.arange(n)[:, None])[:, :-1]
    return F.cross_entropy(logits.transpose(1, 2), signs[:, 1:], ignore_index=pad_id)


def step_by_selection(model, letters, signs, pad_id):
    reads, answers = signs[:, :-1], signs[:, 1:]
    n = reads.shape[1]
    logits = model(letters, reads, ~torch.ones(n, n).triu(diagonal=1).bool())
    real = answers != pad_id
    return F.cross_entropy(logits[real], answers[real])


def step_by_gather(model, letters, signs, pad_id):
    n = signs.shape[1] - 1
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    answers = signs[:, 1:, None]
    taken = model(letters, signs[:, :-1], mask).log_softmax(dim=-1).gather(2, answers)
    real = answers.ne(pad_id)
    return -(taken * real).sum() / real.sum()


def step_with_both_masks(model, letters, signs, pad_id):
    reads = signs[:, :-1]
    mask = attention.causal_mask(reads.shape[1]) & attention.padding_mask(reads, pad_id)
    rows = model.train()(letters, signs=reads, mask=mask).reshape(reads.numel(), -1)
    losses = F.cross_entropy(rows, signs[:, 1:].reshape(-1), reduction="none")
    return losses[signs[:, 1:].reshape(-1) != pad_id].mean()


def step_by_beginnings(model, letters, signs, pad_id):
    """Without a mask: one pass for each beginning, of which the last row counts."""
    total = count = 0
    for i in range(1, signs.shape[1]):
        last = model(letters, signs[:, :i], None)[:, -1]
        total += F.cross_entropy(last, signs[:, i], ignore_index=pad_id, reduction="sum")
        count += (signs[:, i] != pad_id).sum()
    return total / count


def step_date_by_date(model, letters, signs, pad_id):
    losses = []
    for text, date in zip(letters, signs, strict=True):
        date = date[date != pad_id]
        mask = attention.causal_mask(len(date) - 1)
        logits = model(text[None], date[None, :-1], mask)[0]
        losses.extend(-logits.log_softmax(-1)[i, sign] for i, sign in enumerate(date[1:]))
    return sum(losses) / len(losses)


TRAINING_STEPS = {
    "all signs": step_over_all_signs,
    "selection": step_by_selection,
    "gather": step_by_gather,
    "both masks": step_with_both_masks,
    "beginnings": step_by_beginnings,
    "date by date": step_date_by_date,
}

VARIANTS = [
    pytest.param(check, variant, id=f"{check.__name__}-{name}")
    for check, variants in (
        (checks.check_step_matrix, STEPS),
        (checks.check_projection, PROJECTIONS),
        (checks.check_look_back, LOOK_BACKS),
        (checks.check_split_heads, SPLITS),
        (checks.check_merge_heads, MERGES),
        (checks.check_attention_weights, WEIGHTS),
        (checks.check_find_by, FIND_BYS),
        (checks.check_scaled_dot_product_attention, ATTENTIONS),
        (checks.check_padding_mask, PADDINGS),
        (checks.check_causal_mask, CAUSALS),
        (checks.check_multi_head_attention, MODULES),
        (checks.check_pre_norm_layer, LAYERS),
        (checks.check_two_heads, TWO_HEADS),
        (checks.check_mean_weight, MEANS),
        (checks.check_training_loop, LOOPS),
        (checks.check_rotate_head, ROTATIONS),
        (checks.check_greedy, GREEDY),
        (checks.check_join_parts, JOINS),
        (checks.check_share_bucket, SHARES),
        (checks.check_delta_write, WRITES),
        (checks.check_step_cost, STEP_COSTS),
        (checks.check_pool_heads, POOLS),
        (checks.check_receptive_field, FIELDS),
        (checks.check_remove_each, REMOVALS),
        (checks.check_decoder_step, DECODER_STEPS),
        (checks.check_rotary_attention, ROTARIES),
        (checks.check_training_step, TRAINING_STEPS),
    )
    for name, variant in variants.items()
]


@pytest.mark.parametrize(("check", "variant"), VARIANTS)
def test_a_right_variant_passes(check, variant):
    for seed in (0, 1, 2):
        result = check(variant, seed=seed)
        assert result.passed, result
        assert result.mistakes == ()
        assert repr(result).startswith(f"{check.__name__}: passed.\n")


def test_float64_passes_with_a_note():
    result = checks.check_merge_heads(lambda x: attention.merge_heads(x).double())
    assert result.passed
    assert "float64 came back for float32" in repr(result)


def test_a_query_that_sees_nothing_is_noted():
    nan = checks.check_scaled_dot_product_attention(attention_loops)
    assert nan.passed
    assert "gets NaN from you" in repr(nan)
    zero = checks.check_scaled_dot_product_attention(attention.scaled_dot_product_attention)
    assert "NaN" not in repr(zero)
