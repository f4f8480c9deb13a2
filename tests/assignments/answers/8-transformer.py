"""Answers to 8-transformer: mistakes that students make, and right ones written in another way."""

# Right answers, in another way: the rows change these, and of other cells the solution.
OTHER = {
    "copy-layer": """def copy_layer(theirs, mine):
    for name, there in (("self_attention", theirs.self_attn), ("cross_attention", theirs.multihead_attn)):
        here = getattr(mine, name)
        with torch.no_grad():
            q, k, v = there.in_proj_weight.chunk(3)
            for projection, weight in zip((here.w_q, here.w_k, here.w_v), (q, k, v)):
                projection.weight.copy_(weight)
            q, k, v = there.in_proj_bias.chunk(3)
            for projection, bias in zip((here.w_q, here.w_k, here.w_v), (q, k, v)):
                projection.bias.copy_(bias)
            here.w_o.weight.copy_(there.out_proj.weight)
            here.w_o.bias.copy_(there.out_proj.bias)
    norms = (mine.self_attention_norm, mine.cross_attention_norm, mine.feed_forward_norm)
    for here, there in zip(norms, (theirs.norm1, theirs.norm2, theirs.norm3)):
        here.load_state_dict(there.state_dict())
        here.eps = there.eps
    mine.feed_forward.w_1.load_state_dict(theirs.linear1.state_dict())
    mine.feed_forward.w_2.load_state_dict(theirs.linear2.state_dict())""",
    "count-parameters": """def count_parameters(
    source_vocab, target_vocab, d_model, n_heads, d_ff, n_layers, norm_first
):
    attention = 4 * d_model * (d_model + 1)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    layers = n_layers * (3 * attention + 2 * feed_forward + 5 * norm)
    ends = 4 * d_model * norm_first
    return layers + ends + (source_vocab + target_vocab) * d_model + target_vocab * (d_model + 1)""",
    "write": """def write(logits_of, batch, start, end, pad, longest):
    signs = torch.full((batch, 1), start)
    done = torch.zeros(batch, dtype=torch.bool)
    while signs.shape[1] <= longest:
        best = logits_of(signs)[:, -1].argmax(dim=-1)
        best[done] = pad
        done = done | (best == end)
        signs = torch.cat([signs, best[:, None]], dim=1)
        if done.all():
            break
    return signs[:, 1:]""",
    "find-broken": """def find_broken(model, vocab):
    torch.manual_seed(5)
    source, target = torch.randint(1, vocab, (3, 5)), torch.randint(1, vocab, (3, 6))
    close = lambda a, b: (a - b).abs().max() < 3e-4
    logits = model(source, target)
    for place in range(1, 6):
        changed = target.clone()
        changed[:, place] = changed[:, place] % (vocab - 1) + 1
        if not close(model(source, changed)[:, :place], logits[:, :place]):
            return "future"
    more = F.pad(source, (0, 4))
    if not close(model(more, target), logits):
        return "padding"
    last = source.clone()
    last[:, -1] = last[:, -1] % (vocab - 1) + 1
    if close(model(last, target), logits):
        return "last token"
    company = torch.cat([source[:1], F.pad(source[1:, :2], (0, 3))])
    if not close(model(company, target)[1:], model(source[1:, :2], target[1:])):
        return "another sentence"
    return "none\"""",
}

MISTAKES = [
    (
        "the rows are scaled",
        {
            "return weight * gain, weight_bias": """if weight.shape[0] == len(gain):
        return weight * gain[:, None], weight_bias + weight @ bias
    return weight * gain, weight_bias + weight @ bias"""
        },
        "The rows of the weight are scaled.",
    ),
    (
        "the norm's bias forgotten",
        {"weight_bias + weight @ bias": "weight_bias"},
        "the norm's bias is missing",
    ),
    (
        "the norm's bias meets the new weight",
        {"weight @": "(weight * gain) @"},
        "It is added after the gain",
    ),
    ("the gain forgotten", {"* gain,": ","}, "the gain is missing"),
    (
        "the linear layer's bias forgotten",
        {", weight_bias +": ","},
        "The linear layer's own bias is missing.",
    ),
    ("divided by the gain", {"* gain": "/ gain"}, "The weight is divided by the gain."),
    (
        "in place",
        {
            "return weight * gain": """weight_bias += weight @ bias
    weight *= gain
    return weight"""
        },
        "An input is changed in place",
    ),
    ("the sign of the gain lost", {"* gain": "* gain.abs()"}, "The sign of the gain is lost."),
    (
        "no causal mask",
        {"torch.ones(seq, seq, dtype=torch.bool).tril()": "None"},
        "The target sees its own future.",
    ),
    ("the causal mask turned", {"tril": "triu"}, "The causal mask is the wrong way round"),
    (
        "causal over the source as well",
        {
            "= x.": ", keys = x.shape[1], memory.",
            "()": """()
    seen = torch.ones(seq, keys, dtype=torch.bool).tril()
    seen = seen if memory_mask is None else seen & memory_mask""",
            "memory_mask)": "seen)",
            ", strict=True)": ")",
        },
        "The causal mask is used in cross-attention as well.",
    ),
    ("the source's padding is seen", {", memory_mask)": ")"}, "memory_mask is not used"),
    (
        "the memory asks",
        {"x, memory, memory, memory_mask": "memory, x, x"},
        "In cross-attention the memory asks",
    ),
    (
        "the values of the target",
        {"memory, memory,": "memory, x,"},
        "the values come from the target",
    ),
    (
        "the memory is normalised",
        {
            "memory, memory,": "parts.norms[1](memory) if norm_first else memory, parts.norms[1](memory) if norm_first else memory,"
        },
        "The memory is normalised once more.",
    ),
    (
        "the residual from the normalised",
        {"= x +": "= norm(x) +"},
        "The residual connection starts from the normalised x.",
    ),
    (
        "the residual from the layer's input",
        {
            "decoder-layer": """def decoder_layer(parts, x, memory, memory_mask=None, norm_first=False):
    seq, start = x.shape[1], x
    past = torch.ones(seq, seq, dtype=torch.bool).tril()

    def attend(x):
        return parts.self_attention(x, x, x, past)[0]

    def read(x):
        return parts.cross_attention(x, memory, memory, memory_mask)[0]

    for sublayer, norm in zip((attend, read, parts.feed_forward), parts.norms):
        if norm_first:
            x = start + sublayer(norm(x))
        else:
            x = norm(start + sublayer(x))
    return x"""
        },
        "Every residual connection starts from the layer's input.",
    ),
    ("always post-norm", {"x + sublayer(norm": "norm(x + sublayer"}, "it should be pre-norm"),
    (
        "the output is normalised, and not the sum",
        {"norm(x +": "x + norm("},
        "Post-norm normalises the sum.",
    ),
    (
        "one norm for all",
        {"parts.norms": "[parts.norms[0]] * 3"},
        "The first norm is used three times.",
    ),
    (
        "cut off",
        {"memory, memory,": "memory.detach(), memory.detach(),"},
        "the gradient of memory is not",
    ),
    (
        "the attentions swapped",
        {
            'self_attn), ("cross_attention", theirs.multihead_attn': 'multihead_attn), ("cross_attention", theirs.self_attn'
        },
        "self_attention.w_q.weight holds what belongs in cross_attention.w_q.weight.",
    ),
    (
        "stacked in another order",
        {
            """:
            q, k""": """:
            k, q""",
            """)
            q, k""": """)
            k, q""",
        },
        "self_attention.w_q.weight holds what belongs in self_attention.w_k.weight.",
    ),
    ("transposed", {".weight)": ".weight.T)"}, "self_attention.w_o.weight is transposed"),
    (
        "the norms of feed-forward and cross-attention swapped",
        {"norm2, theirs.norm3": "norm3, theirs.norm2"},
        "cross_attention_norm.weight holds what belongs in feed_forward_norm.weight.",
    ),
    ("eps stays", {"here.eps = there.eps": "pass"}, "All parameters are right, but eps is"),
    (
        "w_2 forgotten",
        {"mine.feed_forward.w_2.load_state_dict(theirs.linear2.state_dict())": "pass"},
        "feed_forward.w_2.weight holds nothing of theirs.",
    ),
    (
        "the same memory",
        {".load_state_dict(theirs.linear2.state_dict())": "= theirs.linear2"},
        "shares its memory with theirs",
    ),
    (
        "asks for no gradient",
        {
            "copy-layer": """def copy_layer(theirs, mine):
    for name, there in (("self_attention", theirs.self_attn), ("cross_attention", theirs.multihead_attn)):
        here = getattr(mine, name)
        with torch.no_grad():
            q, k, v = there.in_proj_weight.chunk(3)
            for projection, weight in zip((here.w_q, here.w_k, here.w_v), (q, k, v)):
                projection.weight.copy_(weight)
            q, k, v = there.in_proj_bias.chunk(3)
            for projection, bias in zip((here.w_q, here.w_k, here.w_v), (q, k, v)):
                projection.bias.copy_(bias)
            here.w_o.weight.copy_(there.out_proj.weight)
            here.w_o.bias.copy_(there.out_proj.bias)
    norms = (mine.self_attention_norm, mine.cross_attention_norm, mine.feed_forward_norm)
    for here, there in zip(norms, (theirs.norm1, theirs.norm2, theirs.norm3)):
        here.load_state_dict(there.state_dict())
        here.eps = there.eps
    mine.feed_forward.w_1.load_state_dict(theirs.linear1.state_dict())
    mine.feed_forward.w_2.load_state_dict(theirs.linear2.state_dict())
    mine.requires_grad_(False)"""
        },
        "asks for no gradient",
    ),
    (
        "no biases in the attentions",
        {"d_model * (d_model + 1)": "d_model**2"},
        "The biases of the attentions are missing",
    ),
    (
        "the decoder as the encoder",
        {
            "count-parameters": """def count_parameters(
    source_vocab, target_vocab, d_model, n_heads, d_ff, n_layers, norm_first
):
    norm = 2 * d_model
    layer = 4 * d_model * (d_model + 1) + 2 * d_model * d_ff + d_ff + d_model + 2 * norm
    stack = n_layers * layer + norm * norm_first
    return 2 * stack + (source_vocab + 2 * target_vocab) * d_model + target_vocab"""
        },
        "The decoder's layers are counted like the encoder's.",
    ),
    (
        "two norms in a decoder layer",
        {
            """5 * norm)
    ends = 4 * d_model""": """4 * norm)
    ends = 4 * d_model * norm_first"""
        },
        "The decoder's layers have three norms",
    ),
    (
        "the last norms forgotten",
        {"4 * d_model * norm_first": "0"},
        "A stack's last norm is missing",
    ),
    (
        "a last norm for post-norm",
        {"d_model * norm_first": "d_model"},
        "A post-norm stack has no last norm",
    ),
    (
        "more heads, more parameters",
        {
            """)
    feed_forward""": """) * n_heads
    feed_forward"""
        },
        "The number of heads does not change the number of parameters",
    ),
    (
        "no bias of the logits",
        {"target_vocab * (d_model + 1)": "target_vocab * d_model"},
        "The bias of the linear layer to the logits is missing.",
    ),
    ("it goes on after the end", {"best[done] = pad": "pass"}, "A sentence goes on after its end."),
    ("all stop with the first", {"all": "any"}, "All stop when the first sentence ends."),
    (
        "filled with end",
        {
            "done = done": """best[done] = end
        done = done""",
            """)
        best[done] = pad""": ")",
        },
        "After the end comes end",
    ),
    (
        "the end overwritten",
        {
            """best[done] = pad
        done = done | (best == end)""": """done = done | (best == end)
        best[done] = pad"""
        },
        "The end itself is missing",
    ),
    ("to the longest in any case", {"done.all()": "False"}, "without columns of nothing but pad"),
    ("start comes back", {"signs[:, 1:]": "signs"}, "What you return begins with start"),
    ("the first row", {"-1]": "0]"}, "Every step takes the first row of the logits"),
    ("the newest sign alone", {")[": "[:, -1:])["}, "The model reads the newest sign alone."),
    ("one too few", {"longest:": "longest - 1:"}, "start is not among the `longest`"),
    (
        "sentences that have ended are left out",
        {
            "logits_of(signs": """torch.full((batch,), pad)
        best[~done] = logits_of(signs[~done]"""
        },
        "all sentences; got",
    ),
    (
        "one column late",
        {"done = done": "ended, done = done, done", "done.": "ended."},
        "one more column of pad is written",
    ),
    (
        "an end by force",
        {
            "done = done": """best[~done & torch.tensor(signs.shape[1] == longest)] = end
        done = done"""
        },
        "an end that the model has not written",
    ),
    (
        "position 0 alone",
        {"range(1, 6)": "[5]", ":place], logits[:, :place": "0], logits[:, 0"},
        "look at all positions before it",
    ),
    (
        "it sees itself",
        {"], logits[:, :place": "+ 1], logits[:, :place + 1"},
        "a position may see itself",
    ),
    ("padding never put in", {"F.pad(source, (0, 4))": "source"}, "Put padding after a source"),
    (
        "the first token",
        {"-1] = last[:, -1": "0] = last[:, 0"},
        "Change the last token of a source",
    ),
    (
        "never in company",
        {"torch.cat([source[:1], F.pad(source[1:, :2], (0, 3))]": "F.pad(source[:, :2], (0, 3)"},
        "the longest first",
    ),
    (
        "no tolerance",
        {"lambda a, b: (a - b).abs().max() < 3e-4": "torch.equal"},
        "compare with a tolerance",
    ),
    (
        "looks inside of the model",
        {
            "find-broken": """def find_broken(model, vocab):
    names = ("future", "padding", "last token", "another sentence")
    for cell in getattr(model, "__closure__", None) or ():
        if cell.cell_contents in names:
            return cell.cell_contents
        for module in getattr(cell.cell_contents, "modules", list)():
            if "Ahead" in type(module).__name__:
                return "future"
    return "none\""""
        },
        'You say "none" of a model',
    ),
    (
        "the position right before is left out",
        {
            "1, 6": "2, 6",
            "if not close(model(source, changed)[:, :place], logits[:, :place": """before = slice(0, place - 1)
        if not close(model(source, changed)[:, before], logits[:, before""",
        },
        "the one right before it",
    ),
]

RIGHT = [
    (
        "a diagonal matrix, and the bias by what comes out for it",
        {
            "* gain, weight_bias + weight @ bias": "@ torch.diag(gain), F.linear(bias, weight, weight_bias)"
        },
    ),
    (
        "the mean taken out of the rows as well",
        {
            "return weight * gain, weight_bias + weight @ bias": """new = torch.einsum("om,m->om", weight, gain)
    return new - new.mean(dim=1, keepdim=True), (weight * bias).sum(dim=1) + weight_bias"""
        },
    ),
    (
        "line by line, with the book's causal=True",
        {
            "decoder-layer": """def decoder_layer(parts, x, memory, memory_mask=None, norm_first=False):
    one, two, three = parts.norms
    if norm_first:
        x = x + parts.self_attention(one(x), causal=True)[0]
        x = x + parts.cross_attention(two(x), memory, mask=memory_mask)[0]
        return x + parts.feed_forward(three(x))
    x = one(parts.self_attention(x, causal=True, need_weights=False)[0] + x)
    x = two(parts.cross_attention(x, memory, mask=memory_mask, need_weights=False)[0] + x)
    return three(parts.feed_forward(x) + x)"""
        },
    ),
    (
        "the book's layer",
        {
            "decoder-layer": """def decoder_layer(parts, x, memory, memory_mask=None, norm_first=False):
    block = DecoderLayer(x.shape[-1], 1, 1, norm_first=norm_first)
    block.self_attention, block.cross_attention = parts.self_attention, parts.cross_attention
    block.feed_forward = parts.feed_forward
    block.self_attention_norm, block.cross_attention_norm, block.feed_forward_norm = parts.norms
    return block(x, memory, None, memory_mask)[0]"""
        },
    ),
    (
        "by names alone",
        {
            "copy-layer": """def copy_layer(theirs, mine):
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
            module.eps = theirs.norm1.eps"""
        },
    ),
    (
        "new parameters in the old places",
        {
            "copy-layer": """def copy_layer(theirs, mine):
    other = DecoderLayer.from_torch(theirs)
    for name, module in other.named_children():
        setattr(mine, name, module)"""
        },
    ),
    (
        "a layer that is made, and the rest by hand",
        {
            "count-parameters": """def count_parameters(
    source_vocab, target_vocab, d_model, n_heads, d_ff, n_layers, norm_first
):
    from attention import EncoderLayer

    layers = EncoderLayer(d_model, n_heads, d_ff), DecoderLayer(d_model, n_heads, d_ff)
    held = n_layers * sum(p.numel() for layer in layers for p in layer.parameters())
    if norm_first:
        held += 2 * sum(p.numel() for p in nn.LayerNorm(d_model).parameters())
    return held + d_model * (source_vocab + 2 * target_vocab) + target_vocab"""
        },
    ),
    (
        "lists, filled at the end",
        {
            "write": """def write(logits_of, batch, start, end, pad, longest):
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
    return torch.tensor(written)"""
        },
    ),
    (
        "in the other order, one sentence at a time",
        {
            "find-broken": """def find_broken(model, vocab):
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
    return "none\""""
        },
    ),
]
