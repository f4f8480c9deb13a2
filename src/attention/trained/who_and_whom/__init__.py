"""Who did what to whom: the book's model, which Part I computes with.

At each of its verbs, a sentence says who acts and who is acted on. Besides what every task has,
there are three modules: `variants` has models with one thing changed, `checkpoints` has the model
on its way, and `divisors` shows what dividing the scores does to a model with larger heads.
"""

from attention.trained.ablation import without_head
from attention.trained.task import Task
from attention.trained.who_and_whom.checkpoints import (
    Checkpoint,
    load_checkpoint,
    load_losses,
    train_checkpoints,
)
from attention.trained.who_and_whom.data import (
    ADJECTIVES,
    ALL_VERBS,
    ALONE,
    GRAMMARS,
    LONGEST,
    NOBODY,
    NOUNS,
    PARTICIPLES,
    PLACES,
    PLURALS,
    VERBS,
    VOCABULARY,
    WORDS,
    Batch,
    Draw,
    Sentence,
    Verb,
    draw_sentence,
    draw_sentences,
    encode,
    find_verbs,
    new_sentences,
)
from attention.trained.who_and_whom.divisors import RUNS, Course, Run, load_course, train_divisors
from attention.trained.who_and_whom.evaluation import (
    Accuracy,
    Head,
    accuracy,
    choose,
    measure,
    roles,
    with_one_query,
)
from attention.trained.who_and_whom.model import SIZES, Answer, WhoAndWhom
from attention.trained.who_and_whom.stored import WEIGHTS, Measured, load, measured
from attention.trained.who_and_whom.training import RECIPES, losses, train
from attention.trained.who_and_whom.variants import MODELS, RECIPE_OF, VARIANTS

TASK = Task(
    losses=losses,
    models=MODELS,
    recipes=RECIPE_OF,
    measure=measure,
    weights=WEIGHTS,
    seeds=dict.fromkeys(MODELS, range(5)),
    choose=choose,
    besides=[train_checkpoints, train_divisors],
)
