"""What the induction models were on the way: stored, and what training gives."""

import pytest
import torch

from attention.trained import induction
from attention.trained.head_scores import induction_score, previous_token_score
from attention.trained.induction import (
    LAYERS,
    SEEDS,
    SYMBOLS,
    decode,
    encode,
    load_progress,
    new_sequences,
    train,
)
from attention.trained.induction import progress as on_the_way
from attention.trained.induction.progress import EVERY


@pytest.mark.parametrize("n_layers", LAYERS)
def test_the_last_scores_are_those_of_the_stored_model(n_layers):
    """The last were taken twelve steps before the end, where the learning rate is near 0."""
    progress = load_progress(n_layers)
    assert {len(points) for points in progress} == {induction.RECIPE.steps // EVERY}
    token_ids, _ = new_sequences(500)
    with torch.no_grad():
        _, weights = induction.load(n_layers)(token_ids)
    previous = previous_token_score(weights[0]).max()
    followed = induction_score(weights[-1], token_ids).max()
    torch.testing.assert_close(progress.previous[-1], previous, atol=0.005, rtol=0)
    torch.testing.assert_close(progress.induction[-1], followed, atol=0.005, rtol=0)


def test_heads_and_loss_change_in_the_same_steps_and_only_with_two_layers():
    loss, previous, followed = load_progress(2)
    at = slice(230 // EVERY, 350 // EVERY + 1)
    for points, least in ((-loss, 2.5), (previous, 0.5), (followed, 0.7)):
        before, _, after = points[: at.start].max(), points[at], points[at.stop :].min()
        assert after - before > least
    assert load_progress(1).loss.min() > 2.5


def test_progress_is_stored_as_training_watches_it(tmp_path, monkeypatch):
    monkeypatch.setattr(on_the_way, "WEIGHTS", tmp_path)
    monkeypatch.setattr(
        on_the_way, "train", lambda n, seed, watch: train(n, seed, steps=50, watch=watch)
    )
    monkeypatch.setattr(on_the_way, "LAYERS", (1,))
    on_the_way.train_progress(dry_run=True)
    assert not list(tmp_path.iterdir())
    on_the_way.train_progress(dry_run=False)
    losses = []
    train(1, SEEDS[1], steps=50, watch=lambda step, loss, model: losses.append(loss))
    progress = load_progress(1)
    torch.testing.assert_close(progress.loss, torch.tensor(losses).view(2, 25).mean(1))
    assert progress.previous.shape == progress.induction.shape == (2,)


def test_nothing_is_stored_for_three_layers():
    with pytest.raises(ValueError, match="no weights are stored for n_layers=3; it can be 1 or 2"):
        load_progress(3)


def test_symbols_are_read_and_shown():
    token_ids = encode(SYMBOLS)
    assert token_ids.tolist() == [list(range(32))]
    assert decode(token_ids[0]) == SYMBOLS


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "got 0"), ("a" * 33, "got 33"), ("aB", "text holds 'B', which is no token")],
)
def test_what_is_no_symbol_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        encode(text)
