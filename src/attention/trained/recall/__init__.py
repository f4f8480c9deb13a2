"""Recall: which value was written beside this key? One layer, and in it any mechanism of the book.

Pairs of a key and a value are written, one pair to a position. Then keys are asked on their own,
and the model answers each with its value. The mechanisms differ in what they cache of the pairs:
all of them, the last few, or sums of a fixed size. So they differ in what they can answer, and none
is wrong: each forgets what it must. `MECHANISMS` names them, and `cache_size` says how much each
caches.

In a second task every key is written twice, with two different values, and the later value counts.
Attention without positions sees a set of pairs: it cannot know which of two pairs came later, and
answers half of the questions right. A state that decays or is corrected can know.

`python -m attention.trained.recall` trains them all, with 3 seeds on 2 tasks, in about 10 s each.
`fair` compares stacks of them, each at its best learning rate.
"""

from attention.trained.recall.data import (
    LENGTHS,
    LONGEST,
    MOST,
    N_KEYS,
    N_VALUES,
    Pairs,
    draw_pairs,
    new_pairs,
)
from attention.trained.recall.evaluation import (
    accuracy,
    accuracy_by_pairs,
    accuracy_by_place,
    measure,
)
from attention.trained.recall.mechanisms import D_MODEL, MECHANISMS, N_HEADS, Mechanism, cache_size
from attention.trained.recall.model import RecallModel
from attention.trained.recall.stored import (
    STORED,
    TABLE,
    WEIGHTS,
    load,
    measured,
    measured_places,
)
from attention.trained.recall.table import train_table
from attention.trained.recall.training import RECIPE, losses, train
from attention.trained.task import Task

TASK = Task(
    losses=losses,
    models={name: MECHANISMS[name].make for name in STORED},
    recipes=dict.fromkeys(STORED, RECIPE),
    measure=measure,
    weights=WEIGHTS,
    besides=[train_table],
)
