"""Induction: what followed a token last time follows it again. One layer falls short; two suffice.

A sequence of random tokens holds a part that comes twice. The second time around, each next token
is known to a head that finds where the current token came before and reads what followed it.

Two heads, one after the other, find the position. A head of the first layer copies the previous
token into each token (a previous-token head). A head of the second layer asks for the key whose
copy is the current token, and that key is the token to predict (an induction head).
`attention.trained.head_scores` finds both kinds, `composition` measures what one hands to the
other, and `progress` says how the models learned.
"""

from attention.trained.ablation import without_head
from attention.trained.induction.composition import k_composition, random_composition
from attention.trained.induction.data import (
    LENGTH,
    SYMBOLS,
    Sequences,
    decode,
    draw_sequences,
    encode,
    new_sequences,
)
from attention.trained.induction.evaluation import accuracy, measure
from attention.trained.induction.model import LAYERS, MODELS, AttentionOnly, file_name
from attention.trained.induction.progress import Progress, load_progress, train_progress
from attention.trained.induction.stored import WEIGHTS, load, measured
from attention.trained.induction.training import RECIPE, SEEDS, losses, train
from attention.trained.task import Task

TASK = Task(
    losses=losses,
    models=MODELS,
    recipes=dict.fromkeys(MODELS, RECIPE),
    measure=measure,
    weights=WEIGHTS,
    seeds={file_name(n_layers): [seed] for n_layers, seed in SEEDS.items()},
    besides=[train_progress],
)
