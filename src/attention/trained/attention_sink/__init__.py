"""An attention sink: a head that has nothing to say gives its weight to the first token.

A part of each sequence comes twice, and the model predicts every token, even those that can only be
guessed. The heads of the second layer find what followed last time. Where nothing did, whatever
they say makes the guess worse. A softmax cannot say nothing, so they look at the start mark, from
which they have learned to read next to nothing.

Three kinds of layer are trained: a plain one; one with a learned sink, which is a score of each
head beside those of the keys; and one with a gate after the heads.
"""

from attention.trained.attention_sink.data import (
    LENGTH,
    START,
    Sequences,
    draw_sequences,
    new_sequences,
)
from attention.trained.attention_sink.evaluation import (
    Loss,
    accuracy,
    loss,
    measure,
    weight_of_first,
    without_key,
)
from attention.trained.attention_sink.model import (
    LAYERS,
    STORED,
    GatedLayer,
    LearnedSink,
    SinkModel,
)
from attention.trained.attention_sink.stored import WEIGHTS, load, measured, train_table
from attention.trained.attention_sink.training import RECIPE, losses, train
from attention.trained.task import Task

TASK = Task(
    losses=losses,
    models={layer: (lambda layer=layer: SinkModel(layer)) for layer in STORED},
    recipes=dict.fromkeys(STORED, RECIPE),
    measure=measure,
    weights=WEIGHTS,
    besides=[train_table],
)
