"""What holds for the package as a whole, each checked in an interpreter of its own."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import attention
from attention import MultiHeadAttention, causal_mask, scaled_dot_product_attention

SOURCE = Path(attention.__file__).parent
DRAWING = ("plots", "drawings", "explore")
MATHEMATICS = sorted(
    path
    for path in SOURCE.rglob("*.py")
    if path.relative_to(SOURCE).parts[0].removesuffix(".py") not in (*DRAWING, "checks")
)


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_importing_it_imports_nothing_that_draws_and_no_trained_model():
    """The running example brings a model, and comes when it is asked for."""
    script = "import sys, attention\nprint(*sys.modules)\nattention.running_example"
    first, later = python(f"{script}\nprint(*sys.modules)").splitlines()
    loaded = first.split()
    assert "torch" in loaded
    drawing = {"matplotlib", "drawsvg", "ipywidgets", "anywidget", "IPython", "beartype"}
    assert not drawing & {name.split(".")[0] for name in loaded}
    assert not any(name.startswith("attention.trained") for name in loaded)
    assert any(name.startswith("attention.trained") for name in later.split())
    with pytest.raises(AttributeError, match="has no attribute 'running_examples'"):
        attention.running_examples  # noqa: B018


def test_the_installed_package_brings_every_file():
    """Weights, rows of mistakes, views: setuptools packs what pyproject.toml names, and no more."""
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))
    packed = set()
    for package, patterns in project["tool"]["setuptools"]["package-data"].items():
        for pattern in patterns:
            found = set(SOURCE.parent.joinpath(*package.split(".")).glob(pattern))
            assert found, (package, pattern)
            packed |= found
    files = {path for path in SOURCE.rglob("*") if path.is_file() and ".py" not in path.suffix}
    assert packed == files


def lines_of_code(tree):
    """How many lines are code: no docstring, no comment, no blank line."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return len(ast.unparse(tree).splitlines())


@pytest.mark.parametrize("path", MATHEMATICS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_stands_on_torch_and_is_no_longer_than_one_mechanism(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.split(".")[0])
    allowed = {"attention", "torch", "jaxtyping"} | sys.stdlib_module_names
    room = path.relative_to(SOURCE).parts[0]
    allowed |= {"safetensors"} if room in ("trained", "pretrained") else set()
    allowed |= {"gguf", "tokenizers"} if room == "pretrained" else set()
    assert imported <= allowed
    assert lines_of_code(tree) <= 200


def test_signatures_are_enforced_here():
    """Else every other test checks less than it says."""
    x = torch.zeros(1, 2, 4)
    with pytest.raises(TypeCheckError):
        scaled_dot_product_attention(x, x[..., :3], x)
    with pytest.raises(TypeCheckError):
        MultiHeadAttention(4, 2)(x, mask=torch.zeros(2, 2))
    with pytest.raises(TypeCheckError):
        causal_mask(2.0)


def test_public_names():
    promised = """tokenize Vocabulary TokenEmbedding SinusoidalPositionalEncoding split_heads
        merge_heads padding_mask causal_mask scaled_dot_product_attention MultiHeadAttention
        PerHeadAttention running_example"""
    assert set(promised.split()) <= set(attention.__all__) <= set(dir(attention))


def test_no_public_name_is_a_module():
    """Importing a module puts it into the package under its own name, over what had that name."""
    print_modules = """
import importlib, pkgutil, types, attention
for module in pkgutil.walk_packages(attention.__path__, "attention."):
    if module.name.split(".")[1] not in ("drawings", "explore", "plots"):  # they need what draws
        importlib.import_module(module.name)
print(*(x for x in attention.__all__ if isinstance(getattr(attention, x), types.ModuleType)))
"""
    assert python(print_modules).split() == []


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("need_weights", [True, False])
def test_torch_compile_takes_the_whole_graph(need_weights):
    python(f"""
import torch
from attention import *
torch.manual_seed(0)
module, x, y = MultiHeadAttention(8, 2), torch.randn(2, 5, 8), torch.randn(2, 3, 8)
embed = torch.nn.Sequential(TokenEmbedding(9, 8), SinusoidalPositionalEncoding(8))
ids = torch.tensor([[1, 2, 0]])
mask = causal_mask(5, 3)
for grad in (True, False):
    torch.compiler.reset()
    with torch.set_grad_enabled(grad):
        fast = torch.compile(module, fullgraph=True, backend="aot_eager")
        for mask in (None, mask):
            expected, weights = module(x, y, mask=mask, need_weights={need_weights})
            output, fast_weights = fast(x, y, mask=mask, need_weights={need_weights})
            torch.testing.assert_close(output, expected)
            if weights is not None:
                torch.testing.assert_close(fast_weights, weights)
        embedded = torch.compile(embed, fullgraph=True, backend="aot_eager")(ids)
        torch.testing.assert_close(embedded, embed(ids))
""")


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts differently elsewhere")
@pytest.mark.parametrize("gradients", [False, True])
def test_without_weights_no_matrix_of_scores_is_made(gradients):
    """4096 queries and keys: one head's matrix alone would take 64 MiB."""
    grown = python(f"""
import resource, torch
from attention import MultiHeadAttention
torch.set_num_threads(1)
module, x = MultiHeadAttention(16, 2), torch.randn(1, 4096, 16)
padding = (torch.arange(4096) < 4000)[None, None, None]
module(x[:, :8], need_weights=False)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
with torch.set_grad_enabled({gradients}):
    output, _ = module(x, mask=padding, need_weights=False)
    if {gradients}:
        output.sum().backward()
print(peak() - before)
""")
    assert float(grown) < 64
