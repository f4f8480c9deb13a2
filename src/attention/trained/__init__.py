"""The trained tasks: each has a folder, in which the same names are used for the same things.

`data.py` draws the examples, `model.py` is the model, `training.py` has the recipe, `evaluation.py`
measures, and `stored.py` loads the weights that the book shows, which are in `weights/`. Each
folder's `TASK` names these parts in one record (`task.py`), and `make train` trains all of them
again.
"""
