"""Two verbs: the model of `who_and_whom` on sentences in which the query has to say whose answer is
wanted.

Beside what every task has lies `divisors`, what dividing the scores does to a model with larger
heads while it learns.
"""

from attention.trained.task import Task
from attention.trained.two_verbs.data import (
    AND,
    LONGEST,
    TWO,
    VOCABULARY,
    TwoVerbs,
    Verb,
    draw_two_verbs,
    encode,
    find_verbs,
    new_two_verbs,
)
from attention.trained.two_verbs.divisors import RUNS, Course, Run, load_course, train_divisors
from attention.trained.two_verbs.evaluation import choose, measure, roles, with_one_query
from attention.trained.two_verbs.model import MODELS, SIZES
from attention.trained.two_verbs.stored import WEIGHTS, Measured, load, measured
from attention.trained.two_verbs.training import RECIPES, losses, train
from attention.trained.who_and_whom.evaluation import accuracy

TASK = Task(
    losses=losses,
    models=MODELS,
    recipes={name: RECIPES[int(name.split("x")[0])] for name in MODELS},
    measure=measure,
    weights=WEIGHTS,
    seeds=dict.fromkeys(MODELS, range(5)),
    choose=choose,
    besides=[train_divisors],
)
