"""Relative clauses: who did what to whom at each verb of a sentence that has clauses inside it.

In "The dog that the cat chased saw the bird", the answers at "chased" are the cat for who and the
dog for whom; at "saw" they are the dog and the bird. The noun nearest before "saw" is the cat; the
model has to find out that it belongs to the clause before the verb can pass over it.
"""

from attention.trained.ablation import without_head
from attention.trained.relative_clauses.data import (
    CLAUSES,
    LONGEST,
    MAIN,
    NO_VERB,
    VOCABULARY,
    ClauseBatch,
    Clauses,
    Verb,
    answer_keys,
    draw_clauses,
    encode_clauses,
    new_clauses,
)
from attention.trained.relative_clauses.evaluation import accuracy, accuracy_by_kind, measure
from attention.trained.relative_clauses.model import (
    LAYERS,
    MODELS,
    ClauseAnswer,
    RelativeClauses,
)
from attention.trained.relative_clauses.stored import WEIGHTS, load, measured
from attention.trained.relative_clauses.training import RECIPE, losses, train
from attention.trained.task import Task

TASK = Task(
    losses=losses,
    models=MODELS,
    recipes=dict.fromkeys(MODELS, RECIPE),
    measure=measure,
    weights=WEIGHTS,
)
