"""check_what_followed (chapter 12): what each head gives to the token that followed last time."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
OCCURRENCE = (
    "For query i, the last place before i with the same token is "
    "`max(j for j in range(i) if ids[j] == ids[i])`"
)


def what_followed(weights, token_ids):
    """weights (batch, heads, seq, seq), token_ids (batch, seq) -> (heads,)."""
    return mean(found(weights, last(token_ids), on=1))


def earlier(token_ids):
    """(batch, query, key): True where the key is before the query and holds its token."""
    return (token_ids[:, :, None] == token_ids[:, None, :]).tril(-1)


def last(token_ids):
    """Of each query the last earlier place with its token, -1 where there is none."""
    places = torch.arange(token_ids.shape[1])
    return torch.where(earlier(token_ids), places, -1).amax(-1)


def found(weights, places, *, on=0, queries_on=0):
    """A list of what the heads give from each query that counts to a key, (heads,) each.

    on: how many places the key lies after the given one. queries_on: the same for the query.
    """
    batch, _, seq, _ = weights.shape
    return [
        weights[b, :, i + queries_on, places[b, i] + on]
        for b in range(batch)
        for i in range(seq - queries_on)
        if places[b, i] >= 0 and places[b, i] + on < seq  # -1 is the last place, as for a learner
    ]


def mean(rows):
    return torch.stack(rows).mean(dim=0)


@BANK.mistake(
    "This is the weight on the earlier copy of the query's own token. A head that looks there "
    "finds the same token again, not what came after it.",
    "Go one place further: from place j of the earlier copy to j + 1.",
)
def same_token(weights, token_ids):
    return mean(found(weights, last(token_ids)))


@BANK.mistake(
    "This is the weight on the token before the earlier copy: one place in the wrong direction.",
    "What followed place j stands at j + 1, not at j - 1.",
)
def what_came_before(weights, token_ids):
    return mean(found(weights, last(token_ids), on=-1))


@BANK.mistake(
    "This is two places after the earlier copy, one too many.",
    "What followed place j stands at j + 1. A slice that begins at j + 1 has moved already.",
)
def one_too_far(weights, token_ids):
    return mean(found(weights, last(token_ids), on=2))


@BANK.mistake(
    "Where a token has come several times, this takes its first occurrence. Last time is the "
    "latest one before the query.",
    f"{OCCURRENCE}: the largest, not the smallest. `list.index` and `argmax` of a mask find the "
    "first.",
)
def first_occurrence(weights, token_ids):
    places = torch.arange(token_ids.shape[1])
    far = len(places)
    first = torch.where(earlier(token_ids), places, far).amin(-1)
    return mean(found(weights, torch.where(first == far, -1, first), on=1))


@BANK.mistake(
    "Place 0 is left out. Where a token came last time at place 0, its query counts too.",
    "Start at place 0: `range(i)`. And ask whether there is an earlier place, not whether it is "
    "true: as a truth value, 0 is False.",
)
def place_0_left_out(weights, token_ids):
    places = last(token_ids)
    return mean(found(weights, torch.where(places == 0, -1, places), on=1))


@BANK.mistake(
    "The weights after all earlier occurrences are added up. That is how Olsson et al. score a "
    "head, and it is another number where a token has come several times.",
    f"Take one key for each query, the one after the last occurrence. {OCCURRENCE}.",
)
def all_occurrences(weights, token_ids):
    after = earlier(token_ids).roll(1, dims=-1)
    given = (weights * after[:, None]).sum(-1).movedim(1, -1)  # (batch, query, heads)
    return given[earlier(token_ids).any(-1)].mean(0)


@BANK.mistake(
    "The last occurrence in the whole sequence is taken, and it may be the query itself or stand "
    "after it. A causal head sees nothing there.",
    f"Look among the places before the query alone. {OCCURRENCE}.",
)
def last_of_the_whole_sequence(weights, token_ids):
    places = torch.arange(token_ids.shape[1])
    same = token_ids[:, :, None] == token_ids[:, None, :]
    anywhere = torch.where(same, places, -1).amax(-1)
    return mean(found(weights, anywhere, on=1))


@BANK.mistake(
    "The sum is divided by the number of all queries. A token that has not come before has "
    "nothing to look up, and counts as 0 here.",
    "Divide by the number of queries whose token has come before.",
)
def over_all_queries(weights, token_ids):
    rows = torch.stack(found(weights, last(token_ids), on=1))
    return rows.sum(dim=0) / token_ids.numel()


@BANK.mistake(
    "Each sequence is averaged by itself, and then these averages are. A sequence with one query "
    "that counts weighs as much as one with nine.",
    "Collect the weights of all sequences first, then take one mean over all of them.",
)
def mean_of_means(weights, token_ids):
    each = zip(weights.split(1), token_ids.split(1), strict=True)
    rows = [found(w, last(ids), on=1) for w, ids in each]
    return mean([mean(row) for row in rows if row])


@BANK.mistake(
    "`query` and `key` have changed places: this is what the token that followed gives to the one "
    "that asks. It stands earlier, so a causal head gives nothing.",
    "The queries stand on axis 2 and the keys on axis 3: `weights[b, :, i, j + 1]`.",
)
def query_and_key_swapped(weights, token_ids):
    return what_followed(weights.mT, token_ids)


@BANK.mistake(
    "The row is that of the next query, i + 1. The token at place i is the one that asks what "
    "follows it.",
    "Only the key moves on by one: `weights[b, :, i, j + 1]`.",
)
def the_next_query(weights, token_ids):
    return mean(found(weights, last(token_ids), on=1, queries_on=1))


@BANK.mistake(
    "These are sums: with twice as many sequences they would be twice as large.",
    "Divide by the number of queries whose token has come before.",
    lambda yours, right, inputs: f"Yours go up to {yours[0].max():.2f}; a weight is 1 at most.",
)
def summed(weights, token_ids):
    return torch.stack(found(weights, last(token_ids), on=1)).sum(dim=0)


@BANK.mistake(
    "One number for all heads. An induction head and a head that never looks there would give it "
    "together.",
    "Average over sequences and queries, and leave the heads apart: (heads,).",
)
def averaged_over_everything(weights, token_ids):
    return what_followed(weights, token_ids).mean()


@BANK.mistake(
    "This counts how often the key gets the largest weight. It is a fair question, and another "
    "one: 0.51 and 0.99 count alike.",
    "Average the weights themselves.",
)
def how_often_it_is_the_largest(weights, token_ids):
    largest = (weights == weights.amax(-1, keepdim=True)).to(weights.dtype)
    return what_followed(largest, token_ids)


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        batch, heads = numbers.sizes(2, least=3)
        seq = numbers.sizes_from.randrange(11, 14)  # longer than SIZES has, so that tokens return
        scores = 2 * numbers.tensor(batch, heads, seq, seq)
        future = torch.ones(seq, seq, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        ids = [[numbers.sizes_from.randrange(6) for _ in range(seq)] for _ in range(batch)]
        return Case({"weights": weights, "token_ids": torch.tensor(ids)})

    return [case(), case()]


TASK = Task("what_followed", what_followed, BANK, cases, {"means": "heads"})


def check_what_followed(function: Callable, *, seed: int = 0) -> Result:
    """Check what_followed(weights, token_ids) -> means.

    weights (batch, heads, seq, seq), token_ids (batch, seq) -> (heads,): the weight that each head
    gives to the key after the last earlier occurrence of the query's token, averaged over all
    queries of the batch whose token has come before.
    """
    return examine(TASK, function, seed)
