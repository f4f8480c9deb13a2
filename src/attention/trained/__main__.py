"""Train every model anew, print what each seed comes to, and store one: `make train`.

For every width and number of heads, `SEEDS` models are trained and measured on 4,000 new
sentences. Of those within half a percent of the best, the one is stored whose heads have the
clearest roles: the most weight on the answer that each looks at, on average over its heads. Of the
stored one it also prints what is left of each answer when a head is switched off. Then the variants
of the model with d_model 8, of each of which seed 0 is stored, and two models on their way. Then
the other tasks: induction, relative clauses, the last speaker, dates, recall.
"""

import argparse
from typing import NamedTuple

import torch

from attention.trained import (
    checkpoints,
    date_stored,
    induction,
    induction_progress,
    last_speaker,
    recall,
    recall_training,
    relative_clauses,
)
from attention.trained.grammar import Batch, encode
from attention.trained.model import WhoAndWhom
from attention.trained.stored import store
from attention.trained.training import (
    Head,
    accuracy,
    new_sentences,
    roles,
    train,
    without_head,
)
from attention.trained.variants import VARIANTS, Change

SEEDS = range(5)
HEADS = {8: (1, 2, 4, 8), 12: (1, 2, 3, 4), 16: (1, 2, 4, 8)}  # by d_model
PAIRS = [(d_model, n_heads) for d_model, counts in HEADS.items() for n_heads in counts]


def clearness(heads: list[Head]) -> float:
    """The mean, over the heads, of the weight on the answer that a head looks at more."""
    return sum(max(head) for head in heads) / len(heads)


class Try(NamedTuple):
    """A trained model, the share of new sentences that it gets right, and its heads' roles."""

    model: WhoAndWhom
    right: float
    heads: list[Head]


def choose(tries: list[Try]) -> Try:
    """Of those within half a percent of the best, the one whose heads have the clearest roles."""
    best = max(each.right for each in tries)
    good = [each for each in tries if each.right >= best - 0.005]
    return max(good, key=lambda each: clearness(each.heads))


def by_seed(tries: list[Try]) -> str:
    return " ".join(f"{each.right:.3f}" for each in tries)


def report(chosen: Try, batch: Batch, tries: list[Try]) -> None:
    model, _, heads = chosen
    d_model, n_heads = model.attention.d_model, model.attention.n_heads
    parameters = sum(x.numel() for x in model.parameters())
    print(f"{d_model:7d}  {n_heads:7d}  {parameters:10,d}  {by_seed(tries)}", flush=True)
    for i, head in enumerate(heads):
        left = accuracy(without_head(model, i), batch)
        looks = f"looks at who {head.who:.2f}, whom {head.whom:.2f}"
        print(f"    head {i} {looks}; switched off: who {left.who:.2f}, whom {left.whom:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="print, and store nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small
    new = {d_model: new_sentences(d_model) for d_model in HEADS}
    batches = {d_model: encode(sentences) for d_model, sentences in new.items()}

    def tried(d_model: int, n_heads: int, change: Change | None = None, **options) -> list[Try]:
        models = [train(d_model, n_heads, seed, change=change, **options) for seed in SEEDS]
        batch, sentences = batches[d_model], new[d_model]
        return [Try(m, accuracy(m, batch).both, roles(m, sentences)) for m in models]

    print("d_model  n_heads  parameters  both right, by seed; then the heads of the stored one")
    for d_model, n_heads in PAIRS:
        tries = tried(d_model, n_heads)
        chosen = choose(tries)
        report(chosen, batches[d_model], tries)
        if not options.dry_run:
            store(*chosen)
    print("variant of d_model 8: both right, by seed")
    for variant, change in VARIANTS.items():
        if variant == "feed-forward":  # lets one head do it, at steps that are not too large
            tries = tried(8, 1, change, learning_rate=0.01)
        else:
            tries = tried(8, 2, change)
        print(f"{variant:24}  {by_seed(tries)}", flush=True)
        if not options.dry_run:
            store(*tries[0], variant)
    print("on the way, at d_model 8 with 2 heads: both right at each step that is stored")
    for seed in checkpoints.SEEDS:
        if not options.dry_run:
            checkpoints.store_checkpoints(seed)
        on_the_way = [checkpoints.load_checkpoint(seed, step).right for step in checkpoints.STEPS]
        print(f"seed {seed}  {' '.join(f'{right.both:.3f}' for right in on_the_way)}", flush=True)
    for n_layers, seed in induction.SEEDS.items():
        model, progress = induction_progress.train_watched(n_layers)
        share = induction.accuracy(model, induction.new_sequences())
        print(f"induction, {n_layers} layer(s), seed {seed}  {share:.3f}", flush=True)
        if not options.dry_run:
            induction.store_induction(model, share)
            induction_progress.store_progress(n_layers, progress)
    for n_layers, seed in relative_clauses.SEEDS.items():
        model = relative_clauses.train_clauses(n_layers, seed)
        by_kind = relative_clauses.accuracy_by_kind(model, relative_clauses.new_clauses())
        told = "  ".join(f"{kind} {share:.3f}" for kind, share in by_kind.items())
        print(f"relative clauses, {n_layers} layer(s), seed {seed}  {told}", flush=True)
        if not options.dry_run:
            relative_clauses.store_clauses(model, by_kind)
    for scheme in last_speaker.SCHEMES:
        speaker = last_speaker.train(scheme, last_speaker.SEED)
        by_length = last_speaker.accuracy_by_length(speaker)
        told = "  ".join(f"{length}: {share:.3f}" for length, share in by_length.items())
        print(f"last speaker, {scheme}, seed {last_speaker.SEED}  {told}", flush=True)
        if not options.dry_run:
            last_speaker.store_speaker(speaker, by_length)
    date_stored.train_all(dry_run=options.dry_run)
    recall_training.train_all(list(recall.MECHANISMS), dry_run=options.dry_run)


if __name__ == "__main__":
    main()
