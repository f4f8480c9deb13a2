"""Who spoke last? One layer of attention, five ways to tell it the order, tested on longer talks.

A talk is a row of words: names, other words and question marks. After a name that person speaks. At
a question mark the model says who spoke last, which is the nearest name before it.

It learns from talks of 16 words. In a longer talk the answer is just as near; only the past that
must be ignored is longer. So if a model fails, the cause is not memory: it is what a scheme makes
of positions and distances that training never had.
"""

from attention.trained.ablation import without_head
from attention.trained.last_speaker.data import (
    LENGTH,
    LENGTHS,
    NAMES,
    OTHERS,
    QUESTION,
    WORDS,
    Talks,
    draw_talks,
    new_talks,
)
from attention.trained.last_speaker.evaluation import accuracy, accuracy_by_length, measure
from attention.trained.last_speaker.model import MODELS, SCHEMES, LastSpeaker
from attention.trained.last_speaker.stored import WEIGHTS, load, measured
from attention.trained.last_speaker.training import RECIPE, losses, train
from attention.trained.task import Task

TASK = Task(
    losses=losses,
    models=MODELS,
    recipes=dict.fromkeys(MODELS, RECIPE),
    measure=measure,
    weights=WEIGHTS,
)
