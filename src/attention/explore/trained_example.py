"""The running example in float64, from which every explorer makes its frames."""

from collections.abc import Sequence

from attention.example import RunningExample, running_example


def trained_example(d_model: int, n_heads: int, sentences: Sequence[str]) -> RunningExample:
    """Make the running example in float64: see `running_example` for the arguments and errors."""
    example = running_example(d_model, n_heads, sentences)
    return example._replace(x=example.x.double(), attention=example.attention.double())
