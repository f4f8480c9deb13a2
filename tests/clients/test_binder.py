"""What Binder would build and start, as far as that goes without a container engine.

The newest repo2docker is asked, in an environment of its own, because mybinder.org runs the newest.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from tools.refresh import notebooks

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(tmp_path):
    """What repo2docker says about the checkout: the Python it would install, the Dockerfile."""
    environment = tmp_path / "repo2docker"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    programs = environment / "bin"
    pip = [programs / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "jupyter-repo2docker"], check=True)
    command = [programs / "jupyter-repo2docker", "--no-build", "--debug", "."]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_binder_has_a_tested_python_and_leaves_the_installing_to_postbuild(build):
    checks = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    tested = checks["jobs"]["test"]["strategy"]["matrix"]["python"]
    version = (ROOT / "binder/runtime.txt").read_text("utf-8").strip().removeprefix("python-")
    assert version in tested
    assert f"Building conda environment for python={version}\n" in build

    # repo2docker would hand a requirements.txt to pip, and pip would fetch torch with CUDA.
    steps = [line for line in build.splitlines() if line.startswith("RUN ")]
    assert steps[-1] == "RUN ./binder/postBuild", steps
    assert "/pip install" not in build


def test_postbuild_installs_the_lock_then_the_package(tmp_path):
    # Each program that it calls is one that writes down how it was called.
    programs = tmp_path / "bin"
    programs.mkdir()
    record = tmp_path / "calls"
    for name in ("python", "uv"):
        program = programs / name
        program.write_text(
            '#!/bin/sh\necho "$(basename "$0") $* | $UV_PYTHON $UV_TORCH_BACKEND" >> "$RECORD"\n'
        )
        program.chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "NB_PYTHON_PREFIX": "/the/environment",
        "RECORD": str(record),
    }
    subprocess.run([ROOT / "binder/postBuild"], cwd=ROOT, env=environment, check=True)
    assert record.read_text().splitlines() == [
        "python -m pip install --no-cache-dir uv |  ",
        "uv pip install -r requirements.txt | /the/environment cpu",
        "uv pip install --no-deps --editable . | /the/environment cpu",
        "uv pip install --no-deps --require-hashes -r src/attention/pretrained/requirements.txt "
        "| /the/environment cpu",
        "uv pip uninstall nbgrader | /the/environment cpu",
    ]
    dry = ["make", "--dry-run", "--always-make", "test"]
    made = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert " -r requirements.txt\n" in made


@pytest.fixture
def server(tmp_path):
    """The address and the token of a server as Binder starts it: `jupyter notebook` in the
    repository, under an address of a hub's making.
    """
    home = tmp_path / "home"
    home.mkdir()
    runtime = home / "runtime"
    own_folders = {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(runtime),
    }
    options = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    at_a_hub = ["--ServerApp.base_url=/user/reader/", "--IdentityProvider.token=a-token"]
    log = home / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "notebook", *options, *at_a_hub],
            cwd=ROOT,
            env=os.environ | own_folders,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        written = runtime / f"jpserver-{process.pid}.json"
        yield started(process, written, log)
    finally:
        process.terminate()
        process.wait(timeout=60)


def started(process, written, log):
    """The address and the token, once the server has written them down and answers."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError, ValueError):  # no file yet, half a file, no answer
            address = json.loads(written.read_text())
            with urlopen(f"{address['url']}api/status?token={address['token']}"):
                return address["url"], address["token"]
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_a_link_opens_its_notebook_in_jupyterlab(server):
    address, token = server
    for path in notebooks():
        urlpath = f"lab/tree/book/{path.name}"  # as in the launch menu
        with urlopen(f"{address}{urlpath}?token={token}") as answer:
            page = answer.read().decode()
        settings = page.partition('type="application/json">')[2].partition("</script>")[0]
        assert json.loads(settings)["treePath"] == f"book/{path.name}"
        with urlopen(f"{address}api/contents/book/{path.name}?token={token}") as answer:
            cells = json.load(answer)["content"]["cells"]
        assert [cell["id"] for cell in cells].count("setup") == 1
