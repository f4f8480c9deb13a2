"""The numbers of each explorer of Parts II and III beside an independent computation."""

import inspect
import itertools
import math
import re
from functools import partial
from pathlib import Path
from statistics import median

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attention import (
    EncoderLayer,
    KeyValueCache,
    LatentCache,
    MultiHeadAttention,
    explore,
    lsh_attention,
    performer_attention,
    split_heads,
)
from attention.cost.situations import load_situations
from attention.explore import (
    alignment,
    alignment_explorer,
    all_heads_explorer,
    buckets,
    buckets_explorer,
    cache,
    cache_explorer,
    cost,
    cost_explorer,
    features,
    features_explorer,
    induction_explorer,
    layer_explorer,
    memory,
    memory_explorer,
    next_tokens_explorer,
    pattern,
    pattern_explorer,
    positions_explorer,
    situations,
    situations_explorer,
    tiles,
    tiles_explorer,
    writing,
    writing_explorer,
)
from attention.pretrained.maps import from_levels
from attention.pretrained.measured import load_measured
from attention.pretrained.mistakes import MISTAKES
from attention.trained import dates, induction, last_speaker, recall, relative_clauses
from attention.trained.last_speaker import NAMES, SCHEMES, WORDS, new_talks
from attention.trained.relative_clauses import accuracy_by_kind, new_clauses
from attention.trained.without_parts import rows_by_sublayer, spread, without_parts
from tests.unit.explore.frames import frame, options

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-4, check_dtype=False)
no_grad = torch.no_grad()


def test_every_explorer_is_held_against_another_computation():
    """Where a reader may write, the page computes too: `tests/site/test_own_text.py`."""
    tests = "".join(path.read_text("utf-8") for path in HERE.glob("test_*.py"))
    for name in explore.__all__:
        may_write = "reads=None" not in inspect.getsource(getattr(explore, name))
        assert may_write or f"{name}(" in tests or name == "steps_explorer", name  # of drawings


@no_grad
def test_alignment_holds_what_each_model_writes_and_looks_at():
    explorer = alignment_explorer()
    written = [date for date in dates.held_out_dates() if date.text in alignment.DATES]
    assert len(written) == len(alignment.DATES)
    for date, (name, stored) in itertools.product(written, alignment.ATTENTIONS.items()):
        held = frame(explorer, sentence=date.text, attention=name)
        model = dates.load(stored).double()
        encoded = model.encoder(dates.encode([date])[0])[0]
        is_right = bool(dates.right(model, [date]))
        assert "".join(held["tokens"]) == date.text and len(held["signs"]) == dates.ANSWER
        assert (held["signs"] == [*date.iso, "end"]) == is_right
        for part, ends in held["said"].items():
            assert slice(*ends) == getattr(date, part)
        if name == "none: the last state":
            half = encoded.shape[1] // 2
            last = torch.cat((encoded[-1, :half], encoded[0, half:]))
            close(held["context"][:, 0], last.expand(dates.ANSWER, -1))
            assert "weights" not in held
            continue
        close(held["context"][:, 0], held["weights"] @ encoded)
        if is_right:  # then it was told the same signs as in training
            close(held["weights"], dates.attention_of(model, [date])[0, 0])


@no_grad
def test_writing_holds_what_the_model_computes():
    explorer, model = writing_explorer(), dates.load("transformer")
    for text in writing.DATES:
        held = frame(explorer, sentence=text)
        letters = dates.LETTERS.encode_batch([list(text)])
        signs = model.write(letters)
        before = torch.cat([torch.tensor([[dates.START]]), signs[:, :-1]], dim=1)
        output = model.transformer(letters, before)
        assert held["tokens"] == list(text)
        assert held["signs"] == [sign.strip("<>") for sign in dates.SIGNS.decode(signs[0])]
        for name, weights in (
            ("encoder", output.encoder_weights),
            ("own", output.self_weights),
            ("cross", output.cross_weights),
        ):
            close(held[name][:-1], weights[0][0], atol=1e-4)
            close(held[name][-1], weights[0][0].mean(0), atol=1e-4)
        close(held["shares"], output.logits[0].softmax(-1), atol=1e-4)


@no_grad
@pytest.mark.parametrize("scheme", SCHEMES)
def test_positions_holds_what_the_models_compute(scheme):
    held, model = frame(positions_explorer(), scheme=scheme), last_speaker.load(scheme).double()
    longest = held["scores"].shape[-1]
    assert longest == (16 if scheme == "learned" else 64)
    refusal = "x has 64 positions, more than max_length=16" if scheme == "learned" else ""
    assert held["refusal"].startswith(refusal) and bool(held["refusal"]) == bool(refusal)
    for query in (1, 15, longest - 1):
        # A talk of one name that a "?" ends, at each of its lengths.
        talk = torch.full((1, query + 1), WORDS.index("ann"))
        talk[0, -1] = WORDS.index("?")
        weights = model(talk, last=True)[1][0, :, 0, :-1]  # to the names
        scores = held["scores"][:, query]
        close(scores[:, :query].softmax(-1), weights / weights.sum(-1, keepdim=True))
        assert scores[:, query + 1 :].eq(-torch.inf).all()
    asked = [query for query in held["queries"] if query < longest or scheme != "learned"]
    for query, weights, shares, speaker in zip(
        asked, held["weights"], held["shares"], held["speakers"], strict=False
    ):
        talk = torch.tensor([[WORDS.index(word) for word in [*held["words"][:query], "?"]]])
        logits, theirs = model(talk)
        close(weights[:, : query + 1], theirs[0, :, -1])
        assert not weights[:, query + 1 :].any()
        close(shares, logits[0, -1].softmax(-1))
        assert speaker == [word for word in held["words"][:query] if word in NAMES][-1]
    assert len(asked) == len(held["weights"]) == len(held["shares"])
    if scheme == "rotary":
        right = held["accuracy"][0, held["lengths"].index(64)].item()
        assert right == pytest.approx(last_speaker.accuracy(model.float(), new_talks(64)), abs=3e-3)


@no_grad
@pytest.mark.slow  # measures sixteen models
def test_layer_holds_what_the_models_compute():
    explorer = layer_explorer("The king that an owl followed knew the girl")
    tokens = ["the", "king", "that", "an", "owl", "followed", "knew", "the", "girl"]
    ids = relative_clauses.VOCABULARY.encode_batch([tokens])
    whole = explorer.view.frames["1,1,1,1"]
    assert whole["tokens"] == tokens and whole["places"] == [5, 6] and whole["right"] > 0.999
    assert (whole["who"], whole["whom"]) == (["<unk>", "king"], ["king", "girl"])
    for n_layers, parts in [
        (1, ["layer norm"]),
        (2, ["residual", "feed-forward"]),
        (2, ["feed-forward"]),
    ]:
        on = {"residual": "on", "layer norm": "on", "feed-forward": "on"} | dict.fromkeys(
            parts, "off"
        )
        labels = {re.sub(r"\W", "_", part): at for part, at in on.items()}
        held = frame(explorer, n_layers=n_layers, **labels)
        model = without_parts(relative_clauses.load(n_layers).double(), *parts)
        answer = model(ids)
        who = answer.who[0, [5, 6]].softmax(-1)
        assert held["who"] == relative_clauses.VOCABULARY.decode(who.argmax(-1))
        close(held["sure"][:, 0], who.amax(-1))
        close(held["weights"], torch.cat(answer.weights))
        x = model.positional_encoding(model.embedding(ids))
        apart = torch.cat([spread(rows) for rows in rows_by_sublayer(model.encoder, x)])
        close(held["spread"][:, 0], apart)
        assert held["right"] == pytest.approx(
            accuracy_by_kind(model, new_clauses())["all"], abs=1e-4
        )


@no_grad
@pytest.mark.parametrize("layers", [1, 2])
def test_induction_holds_the_weights_of_every_layer_and_the_shares(layers):
    held = frame(induction_explorer("thecatsawthec", query=12), layers=layers)
    logits, weights = induction.load(layers)(induction.encode("thecatsawthec"))
    assert held["tokens"] == list("thecatsawthec") and f"layer{layers}" not in held
    for i, expected in enumerate(weights):
        close(held[f"layer{i}"], expected[0])
    close(held["shares"], logits[0].softmax(-1))


def test_induction_starts_where_the_answer_is_what_followed_last_time():
    explorer = induction_explorer()
    query, held = explorer.controls["query"].value, frame(explorer, layers=2)
    tokens = held["tokens"]
    assert len(tokens) == len(explorer.controls["query"].options), "each place of the slider counts"
    last = max(j for j in range(query) if tokens[j] == tokens[query])
    found = induction.SYMBOLS[held["shares"][query].argmax()]
    assert found == tokens[last + 1] == tokens[query + 1]


@no_grad
def test_cache_holds_what_the_books_caches_keep_and_each_model_writes():
    explorer, model, first = cache_explorer(), dates.load("transformer").double(), {}
    for name in (*cache.HEADS, *cache.LATENTS):
        converted = cache.converted(model, name)
        decoder = converted.transformer.decoder.layers[0]
        if name in cache.HEADS:
            n_kv_heads = cache.HEADS[name]
            expected = KeyValueCache(batch=1, n_kv_heads=n_kv_heads, max_length=11, d_key=12)
        else:
            expected = LatentCache(batch=1, max_length=11, d_latent=cache.LATENTS[name])
        for part in (decoder.self_attention, decoder.cross_attention):
            if name in cache.HEADS:
                assert part.n_kv_heads == cache.HEADS[name]
            else:
                stacked = torch.cat([part.w_k.weight, part.w_v.weight])
                assert torch.linalg.matrix_rank(stacked) == cache.LATENTS[name]
        for date, right in cache.DATES.items():
            held = frame(explorer, attention=name, date=date)
            assert held["nbytes"] == expected.nbytes == 4 * held["kept"].numel()
            letters = dates.LETTERS.encode_batch([list(date)])
            assert held["signs"] == [dates.SIGN_NAMES[i] for i in converted.write(letters)[0]]
            assert held["read"] == ["start", *held["signs"][:-1]]
            assert held["right"] == [*right, "end"]
            assert held["weights"].shape == (11, 4, 11)
            first.setdefault(name, held["kept"][0])
            if name in ("multi-head", "latent, 24 numbers"):
                assert held["signs"] == held["right"]
    # Numbers of fewer heads are means. Of the first sign: later ones were read after other signs.
    whole, two, one = (first[name] for name in cache.HEADS)
    close(whole.unflatten(0, (2, 2)).mean(1), two)
    close(whole.mean(0, keepdim=True), one)
    # A latent row as wide as the model loses nothing.
    attention = model.transformer.decoder.layers[0].self_attention
    x = torch.randn(2, 7, 48, generator=torch.Generator().manual_seed(0)).double()
    close(cache.latent_attention(attention, 48)(x, causal=True)[0], attention(x, causal=True)[0])


@pytest.mark.parametrize(("d_model", "n_heads"), [(384, 1), (768, 12), (12288, 96)])
@pytest.mark.parametrize("n", [64, 131_072])
def test_cost_holds_what_torch_counts(d_model, n_heads, n):
    """On the meta device, whose tensors hold no numbers: at n = 131,072 too."""
    held = frame(cost_explorer(), d_model=d_model, n_heads=n_heads)
    at = cost.LENGTHS.index(n)
    with torch.device("meta"):
        layer, x = EncoderLayer(d_model, n_heads, 4 * d_model), torch.empty(1, n, d_model)
        with FlopCounterMode(display=False) as counter:
            _, weights = layer(x)
    total = held["parts"][at].sum().item()
    assert 2 * total * 1e6 == pytest.approx(counter.get_total_flops())
    cached = held["held"][at, :, 0].tolist()
    assert cached == pytest.approx([2 * n * d_model / 1e6, weights.numel() / 1e6])
    at_lengths = held["shares"][[cost.CURVE.index(n) for n in cost.LENGTHS]]
    close(at_lengths, held["parts"][..., 0] / held["parts"].sum(1))
    close(held["shares"].sum(-1), torch.ones(len(cost.CURVE)))


@pytest.mark.parametrize("d_model", cost.D_MODELS)
def test_pairs_overtake_at_the_marks_of_the_view_of_costs(d_model):
    for n, others in ((2 * d_model, [0]), (6 * d_model, [0, 2])):
        for step in (-1, 0, 1):
            parts = cost.multiply_adds(n + step, d_model, 1)
            assert torch.sign(parts[1] - parts[others].sum()) == step


@no_grad
def test_tiles_holds_the_attention_over_the_keys_read_so_far():
    explorer, model = tiles_explorer(), last_speaker.load("rotary").double()
    x, layer = model.embed(new_talks(tiles.SEQ).token_ids[[tiles.TALK]]), model.attention
    q, k, v = (split_heads(w(x), layer.n_heads) for w in (layer.w_q, layer.w_k, layer.w_v))
    q, k, v = (each[0, tiles.HEAD] for each in (*layer.attend.transform(q, k), v))
    for tile, causal in itertools.product(tiles.TILES, ("off", "on")):
        held = frame(explorer, tile=tile, causal=causal)
        maximum, factor, total = held["states"].unbind(-1)  # (query, tile)
        scores = q @ k.T / math.sqrt(q.shape[-1])
        place = torch.arange(tiles.SEQ) // tile
        reads = torch.ones_like(held["reads"])
        if causal == "on":
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
            reads = (torch.arange(tiles.SEQ // tile) <= place[:, None]).double()
        close(held["scores"], scores)
        assert held["reads"].equal(reads)
        end = scores.softmax(-1) @ v
        for nth in range(tiles.SEQ // tile):
            seen = scores[:, : (nth + 1) * tile]
            close(maximum[:, nth], seen.amax(-1))
            close(total[:, nth], (seen - seen.amax(-1, keepdim=True)).exp().sum(-1))
            so_far = seen.softmax(-1) @ v[: (nth + 1) * tile]
            close(held["outputs"][:, nth], so_far)
            close(held["errors"][:, nth, 0], (so_far - end).abs().amax(-1))
        # The factor brings the old maximum to the new one; nothing came before the first.
        assert factor[:, 0].eq(0.0).all() and held["errors"][:, -1].max() < 1e-9
        close(factor[:, 1:], (maximum[:, :-1] - maximum[:, 1:]).exp())
    assert (frame(explorer, tile=1, causal="on")["states"][-1, :, 1] < 1.0).sum() == 3


@pytest.mark.parametrize("n_buckets", buckets.N_BUCKETS)
def test_buckets_holds_the_pairs_that_lsh_attention_computes(n_buckets):
    held = frame(buckets_explorer(), n_buckets=n_buckets)
    eye = torch.eye(buckets.SEQ).double()
    for at, x in enumerate(buckets.token_vectors()[:, None, None]):
        for draw, (r, rounds), (c, chunk) in itertools.product(
            range(buckets.DRAWS), enumerate(buckets.ROUNDS), enumerate(buckets.CHUNKS)
        ):
            of_rounds = held["buckets"][at, draw, :rounds].long()
            # With the identity as values the output is the weights.
            theirs = lsh_attention(x, eye[None, None], of_rounds[None, None], chunk_length=chunk)
            seen = buckets.pairs_seen(of_rounds, chunk).any(0) & ~eye.bool()
            alone = ~seen.any(-1)
            assert (theirs[0, 0] > 0).equal(seen | eye.bool() & alone[:, None])
            ours = held["weights"][at].masked_fill(~seen, 0.0)
            share = ours.sum(-1, keepdim=True)
            close((ours / share)[~alone], theirs[0, 0][~alone])
            close(held["kept"][at, draw, r, c], share[buckets.QUERY, 0])
    # The circle has the buckets of the tokens that lie on a point of it, the row is sorted by them.
    step = 360 // held["circle"].shape[-1]
    degrees = held["places"] % 360
    for at, points in enumerate((degrees / step).long()):
        same = held["circle"][..., points] == held["buckets"][at]
        assert same[..., degrees[at] % step == 0].all()
    in_order = held["buckets"].gather(-1, held["order"][..., 0, :].long())
    assert (in_order.diff() >= 0).all() and held["circle"].max() < n_buckets
    assert held["order"].sort()[0].eq(torch.arange(buckets.SEQ)).all()
    # A pair meets in none of r independent rounds with the r-th power of the chance for one.
    chance = held["chance"]  # (rounds, curve)
    assert chance[:, 0].eq(1.0).all() and (chance.diff(dim=-1) < 0.03).all()
    for nth, rounds in enumerate(buckets.ROUNDS):
        close(chance[nth], 1 - (1 - chance[0]) ** rounds, atol=0.1, rtol=0)
    # The query needs its key most, at the angle that the control names.
    asked = held["weights"][:, buckets.QUERY]
    assert asked.argmax(-1).eq(buckets.KEY).all()
    close(asked.sum(-1), torch.ones(len(asked)))
    angles = held["places"][:, buckets.QUERY] - held["places"][:, buckets.KEY]
    assert angles.tolist() == list(buckets.ANGLES)


@pytest.mark.parametrize("name", pattern.PATTERNS)
def test_pattern_holds_what_a_changed_token_changes(name):
    """In layers with random weights, each added to the row that enters it."""
    explorer, rng = pattern_explorer(), torch.Generator().manual_seed(0)
    for width in pattern.WIDTHS:
        held = frame(explorer, pattern=name, width=width)
        mask = held["pattern"].bool()
        before = torch.randn(1, pattern.SEQ, 8, generator=rng).double().expand(pattern.SEQ, -1, -1)
        after = before + torch.eye(pattern.SEQ)[..., None]  # each text, another token
        changed = [after != before]
        for _ in pattern.LAYERS:
            layer = MultiHeadAttention(8, 2).double().requires_grad_(False)
            for weight in layer.parameters():
                weight.copy_(torch.randn(weight.shape, generator=rng) / 3)
            before, after = (x + layer(x, mask=mask)[0] for x in (before, after))
            changed.append((after - before).abs() > 1e-11)
        measured = torch.stack([change.any(-1) for change in changed], dim=1)
        assert measured.equal(held["reached"].bool())
        assert mask.equal(pattern.PATTERNS[name](width))
        # A tile is computed where any pair of it meets.
        for block, count in zip(pattern.BLOCKS, held["computed"].tolist(), strict=True):
            corners = range(0, pattern.SEQ, block)
            cut = [mask[r : r + block, c : c + block] for r in corners for c in corners]
            assert count == sum(tile.numel() for tile in cut if tile.any())


def test_pattern_shows_what_the_page_says_about_it():
    explorer = pattern_explorer()

    def counts(name, token):
        return frame(explorer, pattern=name, width=4)["reached"][token].sum(-1).tolist()

    assert counts("window", 0) == [1, 3, 5, 7, 9]
    assert counts("window and a global token", 0) == [1, 4, 24, 24, 24]
    assert counts("causal window", 1) == counts("causal window and a sink", 1)
    assert counts("strided", 0)[2] == counts("fixed", 0)[2] == 24


def test_situations_holds_the_numbers_of_the_runs():
    explorer, all_pairs = situations_explorer(), "softmax, all pairs"
    every = {*frame(explorer, situation="training", machine="GPU", n=1024)["names"]}
    every |= {"latent rows, 256 + 32"}
    for situation, (machine, runs), n in itertools.product(
        situations.SITUATIONS, situations.MACHINES.items(), situations.LENGTHS
    ):
        seconds = load_situations(runs).seconds[situation]
        held = frame(explorer, situation=situation, machine=machine, n=n)
        if n not in seconds:
            refusal = f"{situation} with n={n:,} was not timed; choose at most 16,384"
            assert held["error"] == refusal
            continue
        timed = {name: each for name, each in seconds[n].items() if name != all_pairs}
        assert held["names"] == list(timed)
        assert {*held["names"], *held["untimed"]} == every
        assert not {*held["names"], all_pairs} & {*held["untimed"]}
        for r, each in enumerate(timed.values()):
            quick = [a / b for a, b in zip(seconds[n][all_pairs], each, strict=True)]
            for name, of in (("medians", median), ("least", min), ("most", max)):
                assert held[name][r].tolist() == pytest.approx([of(quick)])


@no_grad
@pytest.mark.parametrize("mechanism", recall.STORED)
def test_memory_holds_what_is_kept_and_what_is_answered(mechanism):
    held, pairs = frame(memory_explorer(), mechanism=mechanism), recall.new_pairs(64, 1)
    model = recall.load(mechanism).double()
    layer = model.attention
    written = (model.key(pairs.keys) + model.value(pairs.values))[0]
    for nth, n in enumerate(memory.LENGTHS):
        answers = []
        for key in pairs.keys[0, :n]:
            x = torch.cat((written[:n], model.key(key)[None]))
            of_heads = []
            for head in (slice(0, 16), slice(16, 32)):
                q, k, v = ((x @ w.weight.T)[:, head] for w in (layer.w_q, layer.w_k, layer.w_v))
                phi = torch.nn.functional.elu(k) + 1
                if mechanism == "softmax":
                    weights = (k @ q[-1] / 4).softmax(0)
                else:
                    weights = phi @ (torch.nn.functional.elu(q[-1]) + 1)
                of_heads.append(weights @ v / weights.sum())
                if head.start == 0 and mechanism == "softmax":
                    close(held["kept"][:n], torch.cat((k, v), 1)[:n])
                elif head.start == 0:
                    summed = torch.cat((v, torch.ones(n + 1, 1)), 1)[:n]
                    close(held["kept"][nth], phi[:n].T @ summed)
            output = x[-1] + torch.cat(of_heads) @ layer.w_o.weight.T
            answers.append((output @ model.to_value.weight.T).argmax().item())
        assert held["answers"][nth].flatten().tolist() == answers + [-1] * (64 - n)
    assert held["values"] == pairs.values[0].tolist()
    kept = 2 * torch.tensor([held["kept"][:n].numel() for n in memory.LENGTHS])
    if mechanism == "linear":
        kept = torch.full_like(kept, 2 * held["kept"][0].numel())
    assert held["sizes"] == kept.tolist()  # of two heads
    by_seed = recall.measured(mechanism).values()
    assert held["accuracy"][0].tolist() == pytest.approx([shares[0] for shares in by_seed])


@pytest.mark.everything
@pytest.mark.slow  # its frames are 5,000 estimates
def test_features_holds_what_performer_weighs_by_and_errors_that_fall():
    explorer, means = features_explorer(), {}
    _, *heads = features.asked_pairs()
    v = torch.eye(features.PAIRS).double()[None, None]
    for length, orthogonal in itertools.product(features.LENGTHS, ("off", "on")):
        held = frame(explorer, length=length, orthogonal=orthogonal)
        q, k = (float(length) * x[None, None] for x in heads)
        # With one-hot values the output is the weights.
        close(held["exact"], torch.nn.functional.scaled_dot_product_attention(q, k, v)[0, 0])
        for nth, count in enumerate(features.FEATURES):
            drawn = features.projections(count, q.shape[-1], orthogonal == "on")
            for draw, projection in enumerate(drawn[: features.SHOWN]):
                ours = performer_attention(q, k, v, projection.double())[0, 0]
                close(held["estimates"][nth, draw], ours)
        moved = (held["estimates"] - held["exact"]).abs().sum((-2, -1)) / 2 / features.PAIRS
        close(held["misplaced"], moved)
        mean, low, high = held["spread"].T
        assert (low <= mean).all() and (mean <= high).all()
        means[length, orthogonal] = mean
    for orthogonal in ("off", "on"):
        by_length = torch.stack([means[n, orthogonal] for n in features.LENGTHS])
        assert (by_length.diff(dim=1) < 0).all() and (by_length.diff(dim=0) > 0).all()


def test_next_tokens_holds_what_was_written_with_each_mistake():
    stored = load_measured("next_tokens")
    labels = ["".join(each["read"]) for each in stored]
    for prompt, temperature in itertools.product((0, 1), (0.5, 0.7, 1.0, 1.5, 2.0)):
        held = frame(next_tokens_explorer(), prompt=labels[prompt], temperature=temperature)
        at = stored[prompt]["temperatures"].index(temperature)
        close(held["shares"][..., 0], torch.tensor(stored[prompt]["shares"][at]))
        assert held["written"] == [each[0] for each in held["likeliest"]]
        assert held["shares"][..., 0].argmax(dim=1).tolist() == [0] * len(held["written"])
    measured = load_measured("mistakes")
    explorer = next_tokens_explorer(MISTAKES)
    for prompt, mistake in itertools.product((0, 1), MISTAKES):
        held = frame(explorer, prompt=labels[prompt], mistake=mistake)
        assert held["written"] == measured["written"][mistake][prompt]["written"]
        of = measured["prices"][mistake].values()
        mean = sum(text["loss"] for text in of) / len(of)
        assert held["losses"][held["names"].index(mistake)].item() == pytest.approx(mean)


def test_all_heads_hold_what_was_measured_of_each():
    explorer = all_heads_explorer()
    heads, removals = load_measured("heads"), load_measured("removals")
    whole = removals["none"]["loss"]
    held = frame(explorer, sentence=options(explorer, "sentence")[0])
    for layer, head in ((0, 0), (13, 8), (16, 0), (29, 8)):
        previous, subject, first, followed, cost = held["scores"][:, layer, head].tolist()
        for name, score in (("previous", previous), ("first", first), ("induction", followed)):
            assert score == pytest.approx(heads["rules"][name][layer][head])
        across = [heads["verbs"][kind]["subject"][layer][head] for kind in ("place", "relative")]
        assert subject == pytest.approx(sum(across) / 2)
        without = removals[f"{layer}.{head}"]
        rises = [a - b for a, b in zip(without["loss"], whole, strict=True)]
        assert cost == pytest.approx(sum(rises) / 4, abs=1e-5)
        assert held["copied"][layer, head].item() == pytest.approx(without["copied"])
    maps = load_measured("maps").items()
    for label, (sentence, stored) in zip(options(explorer, "sentence"), maps, strict=True):
        assert sentence.removeprefix("Once upon a time ") == label
        held = frame(explorer, sentence=label)
        assert held["tokens"] == stored["tokens"]
        assert held["weights"] == {"levels": stored["levels"], "shape": stored["shape"]}


def test_all_heads_takes_texts_of_the_readers_own():
    explorer = all_heads_explorer(["The dogs near the cat are old."])
    held = frame(explorer, sentence="The dogs near the cat are old.")
    assert held["tokens"][5] == " are"
    weights = from_levels(held["weights"]["levels"], held["weights"]["shape"])
    assert weights.shape == (30, 9, 8, 8) and weights[13, 8, 5, 1] > 0.5


def test_what_the_chapter_says_of_a_repeated_list_is_in_its_map():
    stored = load_measured("maps")["red blue green pink red blue green pink"]
    weights = from_levels(stored["levels"], stored["shape"])[18, 6]
    assert [word.strip() for word in stored["tokens"][:4]] == ["red", "blue", "green", "pink"]
    assert weights[5].argmax() == 2 and weights[6].argmax() == 3  # blue to green, green to pink
    assert weights[1:4, 0].min() > 0.7  # the first half rests
    assert weights[4].max() < 0.5  # the second red, which is another token, finds nothing
