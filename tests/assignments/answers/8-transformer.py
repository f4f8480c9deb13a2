"""Answers to 8-transformer: mistakes that students make, and right ones written in another way."""

from tests.assignments.submissions import Mistake, Right

FOLD = """def fold(gain, bias, weight, weight_bias):
    return {weight}, {bias}
"""

LAYER = """def decoder_layer(parts, x, memory, memory_mask=None, norm_first=False):
    seq, start = x.shape[1], x
    past = {past}

    def attend(x):
        return parts.self_attention(x, x, x, past)[0]

    def read(x):
        return parts.cross_attention({cross})[0]

    for sublayer, norm in zip({sublayers}, {norms}):
        if norm_first:
            {pre}
        else:
            {post}
    return x
"""


def layer(**changed):
    """The reference with one thing changed."""
    parts = {
        "past": "torch.ones(seq, seq, dtype=torch.bool).tril()",
        "cross": "x, memory, memory, memory_mask",
        "sublayers": "(attend, read, parts.feed_forward)",
        "norms": "parts.norms",
        "pre": "x = x + sublayer(norm(x))",
        "post": "x = norm(x + sublayer(x))",
    }
    return LAYER.format(**parts | changed)


COPY = """def copy_layer(theirs, mine):
    for name, there in (("self_attention", {first}), ("cross_attention", {second})):
        here = getattr(mine, name)
        with torch.no_grad():
            {order} = there.in_proj_weight.chunk(3)
            for projection, weight in zip((here.w_q, here.w_k, here.w_v), (q, k, v)):
                projection.weight.copy_(weight)
            {order} = there.in_proj_bias.chunk(3)
            for projection, bias in zip((here.w_q, here.w_k, here.w_v), (q, k, v)):
                projection.bias.copy_(bias)
            here.w_o.weight.copy_(there.out_proj.weight{turn})
            here.w_o.bias.copy_(there.out_proj.bias)
    norms = (mine.self_attention_norm, mine.cross_attention_norm, mine.feed_forward_norm)
    for here, there in zip(norms, {norms}):
        here.load_state_dict(there.state_dict())
        {eps}
    mine.feed_forward.w_1.load_state_dict(theirs.linear1.state_dict())
    {last}
"""


def copy(**changed):
    """A right answer with one thing changed."""
    parts = {
        "first": "theirs.self_attn",
        "second": "theirs.multihead_attn",
        "order": "q, k, v",
        "turn": "",
        "norms": "(theirs.norm1, theirs.norm2, theirs.norm3)",
        "eps": "here.eps = there.eps",
        "last": "mine.feed_forward.w_2.load_state_dict(theirs.linear2.state_dict())",
    }
    return COPY.format(**parts | changed)


COUNT = """def count_parameters(
    source_vocab, target_vocab, d_model, n_heads, d_ff, n_layers, norm_first
):
    attention = {attention}
    feed_forward = {feed_forward}
    norm = {norm}
    layers = n_layers * (3 * attention + 2 * feed_forward + {norms} * norm)
    ends = {ends}
    return layers + ends + (source_vocab + target_vocab) * d_model + {logits}
"""


def count(**changed):
    """A right answer with one thing changed."""
    parts = {
        "attention": "4 * d_model * (d_model + 1)",
        "feed_forward": "2 * d_model * d_ff + d_ff + d_model",
        "norm": "2 * d_model",
        "norms": "5",
        "ends": "4 * d_model * norm_first",
        "logits": "target_vocab * (d_model + 1)",
    }
    return COUNT.format(**parts | changed)


WRITE = """def write(logits_of, batch, start, end, pad, longest):
    signs = torch.full((batch, 1), start)
    done = torch.zeros(batch, dtype=torch.bool)
    while signs.shape[1] <= longest{more}:
        best = logits_of({read})[:, {row}].argmax(dim=-1)
        {fill}
        {note}
        signs = torch.cat([signs, best[:, None]], dim=1)
        if {stop}:
            break
    return signs{back}
"""


def write(**changed):
    """A right answer with one thing changed."""
    parts = {
        "more": "",
        "read": "signs",
        "row": "-1",
        "fill": "best[done] = pad",
        "note": "done = done | (best == end)",
        "stop": "done.all()",
        "back": "[:, 1:]",
    }
    return WRITE.format(**parts | changed)


FIND = """def find_broken(model, vocab):
    torch.manual_seed(5)
    source, target = torch.randint(1, vocab, {source}), torch.randint(1, vocab, {target})
    close = {close}
    logits = model(source, target)
    for place in {places}:
        changed = target.clone()
        changed[:, place] = changed[:, place] % (vocab - 1) + 1
        {future}
            return "future"
    more = {more}
    if not close(model(more, target), logits):
        return "padding"
    last = source.clone()
    last[:, {last}] = last[:, {last}] % (vocab - 1) + 1
    if close(model(last, target), logits):
        return "last token"
    company = {company}
    if not close(model(company, target)[1:], model(source[1:, :2], target[1:])):
        return "another sentence"
    return "none"
"""


def find(**changed):
    """A right answer with one thing changed."""
    parts = {
        "source": "(3, 5)",
        "target": "(3, 6)",
        "close": "lambda a, b: (a - b).abs().max() < 3e-4",
        "places": "range(1, 6)",
        "future": "if not close(model(source, changed)[:, :place], logits[:, :place]):",
        "more": "F.pad(source, (0, 4))",
        "last": "-1",
        "company": "torch.cat([source[:1], F.pad(source[1:, :2], (0, 3))])",
    }
    return FIND.format(**parts | changed)


MISTAKES = [
    Mistake(
        "the rows are scaled",
        cell="fold",
        code="""def fold(gain, bias, weight, weight_bias):
    if weight.shape[0] == len(gain):
        return weight * gain[:, None], weight_bias + weight @ bias
    return weight * gain, weight_bias + weight @ bias
""",
        says="The rows of the weight are scaled.",
    ),
    Mistake(
        "the norm's bias forgotten",
        cell="fold",
        code=FOLD.format(weight="weight * gain", bias="weight_bias"),
        says="the norm's bias is missing",
    ),
    Mistake(
        "the norm's bias meets the new weight",
        cell="fold",
        code=FOLD.format(weight="weight * gain", bias="weight_bias + (weight * gain) @ bias"),
        says="It is added after the gain",
    ),
    Mistake(
        "the gain forgotten",
        cell="fold",
        code=FOLD.format(weight="weight", bias="weight_bias + weight @ bias"),
        says="the gain is missing",
    ),
    Mistake(
        "the linear layer's bias forgotten",
        cell="fold",
        code=FOLD.format(weight="weight * gain", bias="weight @ bias"),
        says="The linear layer's own bias is missing.",
    ),
    Mistake(
        "divided by the gain",
        cell="fold",
        code=FOLD.format(weight="weight / gain", bias="weight_bias + weight @ bias"),
        says="The weight is divided by the gain.",
    ),
    Mistake(
        "in place",
        cell="fold",
        code="""def fold(gain, bias, weight, weight_bias):
    weight_bias += weight @ bias
    weight *= gain
    return weight, weight_bias
""",
        says="An input is changed in place",
    ),
    Mistake(
        "the sign of the gain lost",
        cell="fold",
        code=FOLD.format(weight="weight * gain.abs()", bias="weight_bias + weight @ bias"),
        says="The sign of the gain is lost.",
    ),
    Mistake(
        "no causal mask",
        cell="decoder-layer",
        code=layer(past="None"),
        says="The target sees its own future.",
    ),
    Mistake(
        "the causal mask turned",
        cell="decoder-layer",
        code=layer(past="torch.ones(seq, seq, dtype=torch.bool).triu()"),
        says="The causal mask is the wrong way round",
    ),
    Mistake(
        "causal over the source as well",
        cell="decoder-layer",
        code="""def decoder_layer(parts, x, memory, memory_mask=None, norm_first=False):
    seq, keys = x.shape[1], memory.shape[1]
    past = torch.ones(seq, seq, dtype=torch.bool).tril()
    seen = torch.ones(seq, keys, dtype=torch.bool).tril()
    seen = seen if memory_mask is None else seen & memory_mask
    sublayers = (
        lambda x: parts.self_attention(x, x, x, past)[0],
        lambda x: parts.cross_attention(x, memory, memory, seen)[0],
        parts.feed_forward,
    )
    for sublayer, norm in zip(sublayers, parts.norms):
        x = x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
    return x
""",
        says="The causal mask lies over cross-attention as well.",
    ),
    Mistake(
        "the source's padding is seen",
        cell="decoder-layer",
        code=layer(cross="x, memory, memory"),
        says="memory_mask is not used",
    ),
    Mistake(
        "the memory asks",
        cell="decoder-layer",
        code=layer(cross="memory, x, x"),
        says="In cross-attention the memory asks",
    ),
    Mistake(
        "the values of the target",
        cell="decoder-layer",
        code=layer(cross="x, memory, x, memory_mask"),
        says="the values come from the target",
    ),
    Mistake(
        "the memory is normalised",
        cell="decoder-layer",
        code=layer(
            cross="x, parts.norms[1](memory) if norm_first else memory, "
            "parts.norms[1](memory) if norm_first else memory, memory_mask"
        ),
        says="The memory is normalised once more.",
    ),
    Mistake(
        "the residual from the normalised",
        cell="decoder-layer",
        code=layer(pre="x = norm(x) + sublayer(norm(x))"),
        says="The residual connection starts from the normalised x.",
    ),
    Mistake(
        "the residual from the layer's input",
        cell="decoder-layer",
        code=layer(pre="x = start + sublayer(norm(x))", post="x = norm(start + sublayer(x))"),
        says="Every residual connection starts from the layer's input.",
    ),
    Mistake(
        "always post-norm",
        cell="decoder-layer",
        code=layer(pre="x = norm(x + sublayer(x))"),
        says="due is pre-norm",
    ),
    Mistake(
        "the output is normalised, and not the sum",
        cell="decoder-layer",
        code=layer(post="x = x + norm(sublayer(x))"),
        says="Post-norm normalises the sum.",
    ),
    Mistake(
        "one norm for all",
        cell="decoder-layer",
        code=layer(norms="[parts.norms[0]] * 3"),
        says="The first norm is used three times.",
    ),
    Mistake(
        "cut off",
        cell="decoder-layer",
        code=layer(cross="x, memory.detach(), memory.detach(), memory_mask"),
        says="the gradient of memory is not",
    ),
    Mistake(
        "the attentions swapped",
        cell="copy-layer",
        code=copy(first="theirs.multihead_attn", second="theirs.self_attn"),
        says="self_attention.w_q.weight holds what belongs into cross_attention.w_q.weight.",
    ),
    Mistake(
        "stacked in another order",
        cell="copy-layer",
        code=copy(order="k, q, v"),
        says="self_attention.w_q.weight holds what belongs into self_attention.w_k.weight.",
    ),
    Mistake(
        "transposed",
        cell="copy-layer",
        code=copy(turn=".T"),
        says="self_attention.w_o.weight is transposed",
    ),
    Mistake(
        "the norms of feed-forward and cross-attention swapped",
        cell="copy-layer",
        code=copy(norms="(theirs.norm1, theirs.norm3, theirs.norm2)"),
        says="cross_attention_norm.weight holds what belongs into feed_forward_norm.weight.",
    ),
    Mistake(
        "eps stays",
        cell="copy-layer",
        code=copy(eps="pass"),
        says="the norms have another eps than theirs",
    ),
    Mistake(
        "w_2 forgotten",
        cell="copy-layer",
        code=copy(last="pass"),
        says="feed_forward.w_2.weight holds nothing of theirs.",
    ),
    Mistake(
        "the same memory",
        cell="copy-layer",
        code=copy(last="mine.feed_forward.w_2 = theirs.linear2"),
        says="shares its memory with theirs",
    ),
    Mistake(
        "asks for no gradient",
        cell="copy-layer",
        code=copy() + "    mine.requires_grad_(False)\n",
        says="asks for no gradient",
    ),
    Mistake(
        "no biases in the attentions",
        cell="count-parameters",
        code=count(attention="4 * d_model**2"),
        says="The biases of the attentions are missing",
    ),
    Mistake(
        "the decoder as the encoder",
        cell="count-parameters",
        code="""def count_parameters(
    source_vocab, target_vocab, d_model, n_heads, d_ff, n_layers, norm_first
):
    norm = 2 * d_model
    layer = 4 * d_model * (d_model + 1) + 2 * d_model * d_ff + d_ff + d_model + 2 * norm
    stack = n_layers * layer + norm * norm_first
    return 2 * stack + (source_vocab + 2 * target_vocab) * d_model + target_vocab
""",
        says="The decoder's layers are counted as the encoder's.",
    ),
    Mistake(
        "two norms in a decoder layer",
        cell="count-parameters",
        code=count(norms="4"),
        says="The decoder's layers have three norms",
    ),
    Mistake(
        "the last norms forgotten",
        cell="count-parameters",
        code=count(ends="0"),
        says="A stack's last norm is missing",
    ),
    Mistake(
        "a last norm for post-norm",
        cell="count-parameters",
        code=count(ends="4 * d_model"),
        says="A post-norm stack has no last norm",
    ),
    Mistake(
        "more heads, more parameters",
        cell="count-parameters",
        code=count(attention="4 * d_model * (d_model + 1) * n_heads"),
        says="The number of heads changes no parameter",
    ),
    Mistake(
        "no bias of the logits",
        cell="count-parameters",
        code=count(logits="target_vocab * d_model"),
        says="The bias of the linear layer to the logits is missing.",
    ),
    Mistake(
        "it goes on after the end",
        cell="write",
        code=write(fill="pass"),
        says="A sentence goes on after its end.",
    ),
    Mistake(
        "all stop with the first",
        cell="write",
        code=write(stop="done.any()"),
        says="All stop when the first sentence ends.",
    ),
    Mistake(
        "filled with end",
        cell="write",
        code=write(fill="best[done] = end"),
        says="Behind the end stands end",
    ),
    Mistake(
        "the end overwritten",
        cell="write",
        code=write(fill="done = done | (best == end)", note="best[done] = pad"),
        says="The end itself is missing",
    ),
    Mistake(
        "to the longest in any case",
        cell="write",
        code=write(stop="False"),
        says="without columns of nothing but pad",
    ),
    Mistake(
        "start comes back",
        cell="write",
        code=write(back=""),
        says="start stands in front of what came back",
    ),
    Mistake(
        "the first row",
        cell="write",
        code=write(row="0"),
        says="Every step takes the first row of the logits",
    ),
    Mistake(
        "the newest sign alone",
        cell="write",
        code=write(read="signs[:, -1:]"),
        says="The model reads the newest sign alone.",
    ),
    Mistake(
        "one too few",
        cell="write",
        code=write(more=" - 1"),
        says="start is not among the `longest`",
    ),
    Mistake(
        "sentences that have ended are left out",
        cell="write",
        code=write(read="signs[~done]", stop="done.all()").replace(
            "best = logits_of(signs[~done])[:, -1].argmax(dim=-1)",
            "best = torch.full((batch,), pad)\n"
            "        best[~done] = logits_of(signs[~done])[:, -1].argmax(dim=-1)",
        ),
        says="all sentences; got",
    ),
    Mistake(
        "one column late",
        cell="write",
        code=write(note="ended, done = done, done | (best == end)", stop="ended.all()"),
        says="one more column of pad is written",
    ),
    Mistake(
        "an end by force",
        cell="write",
        code=write(
            note="best[~done & torch.tensor(signs.shape[1] == longest)] = end\n"
            "        done = done | (best == end)"
        ),
        says="an end that the model has not written",
    ),
    Mistake(
        "position 0 alone",
        cell="find-broken",
        code=find(places="[5]", future="if not close(model(source, changed)[:, 0], logits[:, 0]):"),
        says="look at all positions before it",
    ),
    Mistake(
        "it sees itself",
        cell="find-broken",
        code=find(
            future="if not close(model(source, changed)[:, :place + 1], logits[:, :place + 1]):"
        ),
        says="a position may see itself",
    ),
    Mistake(
        "padding never put in",
        cell="find-broken",
        code=find(more="source"),
        says="Put padding behind a source",
    ),
    Mistake(
        "the first token",
        cell="find-broken",
        code=find(last="0"),
        says="Change the last token of a source",
    ),
    Mistake(
        "never in company",
        cell="find-broken",
        code=find(company="F.pad(source[:, :2], (0, 3))"),
        says="the longest first",
    ),
    Mistake(
        "no tolerance",
        cell="find-broken",
        code=find(close="torch.equal"),
        says="compare with a tolerance",
    ),
    Mistake(
        "looks inside of the model",
        cell="find-broken",
        code="""def find_broken(model, vocab):
    names = ("future", "padding", "last token", "another sentence")
    for cell in getattr(model, "__closure__", None) or ():
        if cell.cell_contents in names:
            return cell.cell_contents
        for module in getattr(cell.cell_contents, "modules", list)():
            if "Ahead" in type(module).__name__:
                return "future"
    return "none"
""",
        says='You say "none" of a model',
    ),
    Mistake(
        "the position right before is left out",
        cell="find-broken",
        code=find(
            places="range(2, 6)",
            future="before = slice(0, place - 1)\n"
            "        if not close(model(source, changed)[:, before], logits[:, before]):",
        ),
        says="the one right before it",
    ),
]

RIGHT = [
    Right(
        "a diagonal matrix, and the bias by what comes out for it",
        cell="fold",
        code="""def fold(gain, bias, weight, weight_bias):
    return weight @ torch.diag(gain), F.linear(bias, weight, weight_bias)
""",
    ),
    Right(
        "the mean taken out of the rows as well",
        cell="fold",
        code="""def fold(gain, bias, weight, weight_bias):
    new = torch.einsum("om,m->om", weight, gain)
    return new - new.mean(dim=1, keepdim=True), (weight * bias).sum(dim=1) + weight_bias
""",
    ),
    Right(
        "line by line, with the book's causal=True",
        cell="decoder-layer",
        code="""def decoder_layer(parts, x, memory, memory_mask=None, norm_first=False):
    one, two, three = parts.norms
    if norm_first:
        x = x + parts.self_attention(one(x), causal=True)[0]
        x = x + parts.cross_attention(two(x), memory, mask=memory_mask)[0]
        return x + parts.feed_forward(three(x))
    x = one(parts.self_attention(x, causal=True, need_weights=False)[0] + x)
    x = two(parts.cross_attention(x, memory, mask=memory_mask, need_weights=False)[0] + x)
    return three(parts.feed_forward(x) + x)
""",
    ),
    Right(
        "the book's layer",
        cell="decoder-layer",
        code="""def decoder_layer(parts, x, memory, memory_mask=None, norm_first=False):
    block = DecoderLayer(x.shape[-1], 1, 1, norm_first=norm_first)
    block.self_attention, block.cross_attention = parts.self_attention, parts.cross_attention
    block.feed_forward = parts.feed_forward
    block.self_attention_norm, block.cross_attention_norm, block.feed_forward_norm = parts.norms
    return block(x, memory, None, memory_mask)[0]
""",
    ),
    Right(
        "norm after norm by name",
        cell="copy-layer",
        code=copy(),
    ),
    Right(
        "by names alone",
        cell="copy-layer",
        code="""def copy_layer(theirs, mine):
    state = {}
    for name, x in theirs.state_dict().items():
        name = name.replace("self_attn.", "self_attention.").replace(
            "multihead_attn.", "cross_attention."
        )
        for old, new in (
            ("linear1", "feed_forward.w_1"),
            ("linear2", "feed_forward.w_2"),
            ("norm1", "self_attention_norm"),
            ("norm2", "cross_attention_norm"),
            ("norm3", "feed_forward_norm"),
            ("out_proj", "w_o"),
        ):
            name = name.replace(old, new)
        if "in_proj_" in name:
            for part, third in zip("qkv", x.chunk(3)):
                state[name.replace("in_proj_", f"w_{part}.")] = third
        else:
            state[name] = x
    mine.load_state_dict(state)
    for module in mine.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = theirs.norm1.eps
""",
    ),
    Right(
        "new parameters in the old places",
        cell="copy-layer",
        code="""def copy_layer(theirs, mine):
    other = DecoderLayer.from_torch(theirs)
    for name, module in other.named_children():
        setattr(mine, name, module)
""",
    ),
    Right(
        "counted together",
        cell="count-parameters",
        code=count(),
    ),
    Right(
        "a layer that is made, and the rest by hand",
        cell="count-parameters",
        code="""def count_parameters(
    source_vocab, target_vocab, d_model, n_heads, d_ff, n_layers, norm_first
):
    from attention import EncoderLayer

    layers = EncoderLayer(d_model, n_heads, d_ff), DecoderLayer(d_model, n_heads, d_ff)
    held = n_layers * sum(p.numel() for layer in layers for p in layer.parameters())
    if norm_first:
        held += 2 * sum(p.numel() for p in nn.LayerNorm(d_model).parameters())
    return held + d_model * (source_vocab + 2 * target_vocab) + target_vocab
""",
    ),
    Right(
        "in another order",
        cell="write",
        code=write(),
    ),
    Right(
        "lists, filled at the end",
        cell="write",
        code="""def write(logits_of, batch, start, end, pad, longest):
    signs = [[start] for _ in range(batch)]
    for _ in range(longest):
        best = logits_of(torch.tensor(signs)).argmax(dim=-1)[:, -1].tolist()
        for row, sign in zip(signs, best):
            row.append(sign)
        if all(end in row[1:] for row in signs):
            break
    written = []
    for row in signs:
        row = row[1:]
        if end in row:
            stop = row.index(end) + 1
            row = row[:stop] + [pad] * (len(row) - stop)
        written.append(row)
    return torch.tensor(written)
""",
    ),
    Right(
        "every place in turn",
        cell="find-broken",
        code=find(),
    ),
    Right(
        "in the other order, one sentence at a time",
        cell="find-broken",
        code="""def find_broken(model, vocab):
    torch.manual_seed(9)
    long, short = torch.randint(1, vocab, (1, 7)), torch.randint(1, vocab, (1, 4))
    target = torch.randint(1, vocab, (1, 6))
    alone = model(short, target)

    def far(a, b):
        return (a - b).abs().max().item() > 5e-4

    if far(model(F.pad(short, (0, 1)), target), alone):
        return "padding"
    both = torch.cat([long, F.pad(short, (0, 3))])
    if far(model(both, target.expand(2, 6))[1:], alone):
        return "another sentence"
    other = torch.cat([short[:, :-1], short[:, -1:] % (vocab - 1) + 1], dim=1)
    if not far(model(other, target), alone):
        return "last token"
    for n in range(1, 6):  # what has been written so far must not care for what follows
        if far(model(short, target[:, :n]), alone[:, :n]):
            return "future"
    return "none"
""",
    ),
]
