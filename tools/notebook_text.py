"""Print a notebook as git should compare it: cells and printed results, no pictures, no widgets.

Git uses it for `git diff` and `git log -p` once you have said so in your clone:

    git config diff.notebook.textconv "python3 tools/notebook_text.py"
"""

import json
import sys
from pathlib import Path

for cell in json.loads(Path(sys.argv[1]).read_text("utf-8"))["cells"]:
    print("---", cell["cell_type"], cell.get("id", ""), *cell["metadata"].get("tags", []))
    print("".join(cell["source"]))
    for output in cell.get("outputs", []):
        shown = output.get("data", {}).get("text/plain") or output.get("evalue", "")
        for line in "".join(output.get("text", shown)).splitlines():
            print("  >", line)
