"""What every run of pytest in this folder stands on, `pytest --nbval book` too."""

pytest_plugins = ["tools.kernels"]
