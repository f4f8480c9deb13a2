"""The book's trained model: at its verb, a sentence says who did what to whom.

`grammar` draws the sentences, `model` is the model, `training` trains and measures it, `stored`
loads the weights that the book shows, and `make train` makes them anew.
"""
