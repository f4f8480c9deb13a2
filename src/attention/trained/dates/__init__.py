"""Dates as people write them, turned into ISO dates: "sunday, march the 4th 1973" to "1973-03-04".

The models read letters and write signs. Some are recurrent, without attention or with it, and the
others are small transformers.
"""

from attention.trained.ablation import without_head
from attention.trained.dates.data import (
    END,
    FIRST,
    HELD_OUT,
    LAST,
    LETTERS,
    MONTHS,
    SIGN_NAMES,
    SIGNS,
    START,
    STEPS,
    WrittenDate,
    draw_dates,
    encode,
    held_out_dates,
    write_date,
)
from attention.trained.dates.evaluation import (
    LENGTHS,
    Alignment,
    Measured,
    accuracy,
    alignment,
    attention_of,
    measure,
    right,
)
from attention.trained.dates.model import (
    ANSWER,
    LONGEST,
    MODELS,
    RecurrentDates,
    TransformerDates,
)
from attention.trained.dates.stored import WEIGHTS, load, measured
from attention.trained.dates.training import BATCH, RECIPES, batches, losses, train
from attention.trained.task import Task

TASK = Task(
    losses=losses,
    models=MODELS,
    recipes=RECIPES,
    measure=lambda model: measure(model, held_out_dates())._asdict(),
    weights=WEIGHTS,
    # One seed is enough for the longest, which takes two minutes.
    seeds={name: range(1 if name.endswith("-longest") else 3) for name in MODELS},
)
