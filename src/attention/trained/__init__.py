"""The trained tasks, a folder each, with the same names in it for the same things.

`data.py` draws the examples, `model.py` is the model, `training.py` has the recipe, `evaluation.py`
measures, `stored.py` loads the weights that the book shows, which lie in `weights/`. Each folder's
`TASK` names them in one record (`task.py`), and `make train` trains all of them again.
"""
