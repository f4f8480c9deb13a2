#!/usr/bin/env bash
# Fills .venv beside this file: Python 3.11, torch's CPU build and the packages that grade, all as
# the lock has them. Needs a network, a python3 with venv, and no rights.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# A network that fails for a moment must not cost a class its autograder.
patiently() {
	for pause in 5 30 90; do
		"$@" && return
		echo "$* failed, and is tried again in $pause s." >&2
		sleep "$pause"
	done
	"$@"
}

with_uv() {
	python3 -m venv --clear .uv &&
		patiently .uv/bin/python -m pip install --disable-pip-version-check --quiet uv==0.13.9 &&
		patiently .uv/bin/uv venv --quiet --clear --python 3.11 .venv &&
		patiently .uv/bin/uv pip install --quiet --python .venv --torch-backend cpu \
			--constraint requirements.txt --requirement pyproject.toml --extra explore --group grade
}

# The second way: the Python that is here, and torch as it comes, which may bring a GPU's libraries.
with_pip() {
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
		echo "pip would need Python 3.11 or newer, and python3 is $(python3 --version)." >&2
		return 1
	}
	python3 -m venv --clear .venv && .venv/bin/python - >wanted.txt <<-'END' &&
		import tomllib
		with open("pyproject.toml", "rb") as file:
		    said = tomllib.load(file)
		extra = said["project"]["optional-dependencies"]["explore"]
		print(*said["project"]["dependencies"], *extra, *said["dependency-groups"]["grade"], sep="\n")
	END
		patiently .venv/bin/python -m pip install --disable-pip-version-check --quiet \
			--constraint requirements.txt --requirement wanted.txt
}

with_uv || { echo "uv cannot be used here, so pip is." >&2 && with_pip; }
# The kernel finds `attention` as it finds a package, since it reads nothing else of this folder.
echo "$PWD/src" >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/attention.pth"
