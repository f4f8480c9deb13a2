"""Files of trained weights: safetensors in half precision, and what was measured beside them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from attention.trained.fitting import Model


def half(model: Model) -> dict[str, Tensor]:
    """The state of a model in half precision, which `fit` has rounded its weights to."""
    return {name: tensor.to(torch.float16) for name, tensor in model.state_dict().items()}


def write(path: Path, weights: Mapping[str, Tensor], **told: Any) -> None:
    """Write tensors, and by name what was measured, as JSON."""
    path.parent.mkdir(exist_ok=True)
    save_file(dict(weights), path, {name: json.dumps(value) for name, value in told.items()})


def load(model: Model, path: Path) -> Model:
    """Give a model the weights of a file, in float32, and return it in evaluation mode."""
    model.load_state_dict({name: tensor.float() for name, tensor in load_file(path).items()})
    return model.eval()


def told(path: Path) -> dict[str, Any]:
    """Read what was measured."""
    with safe_open(path, framework="pt") as file:
        return {name: json.loads(value) for name, value in file.metadata().items()}
