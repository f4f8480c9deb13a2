"""Two heads that the reader aims: the values that the verb gets back, and the model's answers."""

import copy

import torch
from ipywidgets import SelectionSlider

from attention.dot_product import scaled_dot_product_attention
from attention.explore.explorer import Explorer, Frame, explorer
from attention.explore.trained_example import answered, tokens_with_verb
from attention.heads import merge_heads, split_heads
from attention.plots import Picture, plot_matrices
from attention.trained.who_and_whom import load

AS_TRAINED = -1


def aim_heads_explorer(sentence: str = "a dog chased the red ball") -> Explorer:
    """Aim all the weight that the verb gives in a head at one word, and see what comes back.

    Args:
        sentence: its words are in the model's vocabulary, a verb among them.

    Returns:
        The explorer, with controls ``head_0`` and ``head_1``.

    Raises:
        ValueError: the sentence has no verb that the model knows.
    """
    tokens = tokens_with_verb(sentence)
    model = copy.deepcopy(load(8, 2)).double().requires_grad_(False)
    module, trained = model.attention, answered(tokens, model)
    verb = trained["verb"]
    x = model.embed(model.vocabulary.encode_batch([tokens]))
    q, k, v = (split_heads(w(x), 2) for w in (module.w_q, module.w_k, module.w_v))
    _, weights = scaled_dot_product_attention(q, k, v)

    def frame(head_0: int, head_1: int) -> Frame:
        aimed = weights.clone()  # (1, heads, query, key)
        for head, word in enumerate((head_0, head_1)):
            if word != AS_TRAINED:
                aimed[0, head, verb] = torch.eye(len(tokens), dtype=aimed.dtype)[word]
        returned = aimed @ v  # (1, heads, query, d_value)
        who, whom = model.read(module.w_o(merge_heads(returned)), torch.tensor([verb]))
        return {
            **trained,
            "weights": aimed[0],
            "values": v[0],
            "returned": returned[0, :, verb],
            "who": who.softmax(-1)[0],
            "whom": whom.softmax(-1)[0],
        }

    def still(frame: Frame) -> Picture:
        return plot_matrices(
            {f"values of head {head}": frame["values"][head] for head in range(2)},
            rows=tokens,
            alt=f"The value rows of {sentence!r} in head 0 and in head 1, a row of four numbers "
            "for each word. The verb gets an average of them back.",
        )

    aims = [("as trained", AS_TRAINED), *((token, place) for place, token in enumerate(tokens))]
    controls = {
        f"head_{head}": SelectionSlider(options=aims, description=f"aim head {head}")
        for head in range(2)
    }
    return explorer("aim_heads", "Aim the heads", controls, frame, still, reads=None)
