"""The report on prose counts what it says it counts, and finds the names that the book avoids."""

import json

from tools.prose import main, measured, misnamed, pages

PAGE = """# A heading of some 500 words is not read

We count. This sentence has seven words: one two.

```python
seat = "whoever comes to .5"
```

- The seat is anew, in $seat$ and in `neck`.
"""


def test_a_page_is_measured_without_its_code(tmp_path):
    (tmp_path / "page.md").write_text(PAGE, "utf-8")
    (tmp_path / "page.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "markdown", "source": [PAGE]}]}), "utf-8"
    )
    for name in ("page.md", "page.ipynb"):
        measures = measured(tmp_path / name)
        assert measures["all words"] == "18"
        assert (measures["≤6w"], measures["colon"], measures["we"]) == ("33%", "33%", "33%")
        found = [(phrase, word) for phrase, word, _ in misnamed(tmp_path / name)]
        assert found == [("seat", "position"), ("anew", "again")]


def test_without_names_every_page_has_a_row(capsys):
    main([])
    said = capsys.readouterr().out
    assert all(path.stem[:33] in said for path in pages())
