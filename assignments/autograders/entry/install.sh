#!/usr/bin/env bash
# Fills .venv beside this file: Python 3.11, torch's CPU build and the packages that grade, all as
# the lock has them. Needs a network, a python3 with venv, and no rights.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
python3 -m venv .uv
.uv/bin/python -m pip install --disable-pip-version-check --quiet uv==0.13.9
.uv/bin/uv venv --quiet --clear --python 3.11 .venv
.uv/bin/uv pip install --quiet --python .venv --torch-backend cpu --constraint requirements.txt \
	--requirement pyproject.toml --extra explore --group grade
# The kernel finds `attention` as it finds a package, since it reads nothing else of this folder.
echo "$PWD/src" >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/attention.pth"
