#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image: the only time that needs a network.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends ca-certificates python3-venv
bash "$(dirname "${BASH_SOURCE[0]}")/install.sh"
