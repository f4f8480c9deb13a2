"""Files of trained weights: safetensors in half precision, with what was measured as metadata."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from attention.trained.fitting import Model, build


def half(model: Model) -> dict[str, Tensor]:
    """The state of a model in half precision, which `fit` has rounded its weights to."""
    return {name: tensor.to(torch.float16) for name, tensor in model.state_dict().items()}


def write(path: Path, weights: Mapping[str, Tensor], **measured: Any) -> None:
    """Write tensors, together with what was measured, by name and as JSON."""
    path.parent.mkdir(exist_ok=True)
    save_file(dict(weights), path, {name: json.dumps(value) for name, value in measured.items()})


def load(make: Callable[[], Model], path: Path) -> Model:
    """Make a model with the weights of a file, in float32, and return it in evaluation mode."""
    model = build(make)
    model.load_state_dict({name: tensor.float() for name, tensor in load_file(path).items()})
    return model.eval()


def metadata(path: Path) -> dict[str, Any]:
    """Read what was measured."""
    with safe_open(path, framework="pt") as file:
        return {name: json.loads(value) for name, value in file.metadata().items()}
