"""What every test stands on: enforced signatures, and the same random examples in every run."""

import pytest
import torch
from hypothesis import settings
from jaxtyping import config, install_import_hook

# Before anything imports `attention`: beartype then checks every call against its jaxtyping
# signature, shapes and named axes included.
install_import_hook("attention", "beartype.beartype")

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

# The tensors are small, and tests run side by side: a second thread would only wait.
torch.set_num_threads(1)


@pytest.fixture
def as_a_reader():
    """Call `attention` as a reader does: without the signature checks, which would speak first."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
