#!/usr/bin/env bash
# Fills .venv beside this file: Python 3.11, torch's CPU build and the packages that grade, all as
# the lock has them. Needs a network, a python3 with venv, and no rights. What a network refuses is
# tried again, then taken from elsewhere: Python from the image, torch as everybody gets it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

again() {
	for wait in 0 5 20; do
		sleep "$wait"
		"$@" && return
	done
	return 1
}

packages() {
	.uv/bin/uv pip install --quiet --python .venv "$@" --constraint requirements.txt \
		--requirement pyproject.toml --extra explore --group grade
}

python3 -m venv .uv
again .uv/bin/python -m pip install --disable-pip-version-check --quiet uv==0.13.9
again .uv/bin/uv venv --quiet --clear --python 3.11 .venv || .uv/bin/uv venv --quiet --clear --python python3 .venv
again packages --torch-backend cpu || again packages
# The kernel finds `attention` as it finds a package, since it reads nothing else of this folder.
echo "$PWD/src" >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/attention.pth"
