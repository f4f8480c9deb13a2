"""From text to token ids (chapter 1)."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from attention.arguments import require_index, require_size

# A word, with the apostrophes and hyphens inside it, or any other single mark but a space.
TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def tokenize(text: str) -> list[str]:
    """Lower-case ``text`` and split it into words; each punctuation mark is a token of its own.

    A letter and its accent count as one, however they are stored (Unicode's form NFC).

    Source:
        This book's own rule; models in use learn theirs from data.

    Example:
        >>> from attention import tokenize
        >>> tokenize("Don't stop, cat!")
        ["don't", 'stop', ',', 'cat', '!']
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {type(text).__name__}")
    return TOKEN.findall(unicodedata.normalize("NFC", text.lower()))


class Vocabulary:
    """All known tokens. A token's id is its index in `tokens`.

    `<pad>` has id 0 and `<unk>`, if there is one, id 1. The tokens of `sentences` follow in the
    order of their first appearance.

    Args:
        sentences: texts, which `tokenize` splits, or lists of tokens.
        unknown: whether `<unk>` stands for every token that is not in the vocabulary. Without it,
            such a token raises a ValueError.

    Example:
        >>> from attention import Vocabulary
        >>> vocabulary = Vocabulary(["the cat saw the dog"])
        >>> vocabulary.tokens
        ('<pad>', '<unk>', 'the', 'cat', 'saw', 'dog')
        >>> vocabulary.encode_batch(["the dog", "the cow saw the cat"])
        tensor([[2, 5, 0, 0, 0],
                [2, 1, 4, 2, 3]])
    """

    pad = "<pad>"
    unk = "<unk>"

    def __init__(self, sentences: Iterable[str | Sequence[str]], *, unknown: bool = True) -> None:
        if isinstance(sentences, str):
            sentences = [sentences]
        _require_list("sentences", sentences)
        specials = [self.pad, self.unk] if unknown else [self.pad]
        words = [token for sentence in sentences for token in _tokens(sentence)]
        self.tokens: tuple[str, ...] = tuple(dict.fromkeys(specials + words))
        self.ids: dict[str, int] = {token: i for i, token in enumerate(self.tokens)}
        self.pad_id: int = self.ids[self.pad]
        self.unk_id: int | None = self.ids[self.unk] if unknown else None

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self.ids

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, unknown={self.unk_id is not None})"

    def encode(self, sentence: str | Sequence[str]) -> list[int]:
        """The id of each token of one sentence: a text, or a list of tokens.

        Raises:
            ValueError: a token is unknown, and there is no `<unk>`.
        """
        ids = []
        for token in _tokens(sentence):
            i = self.ids.get(token, self.unk_id)
            if i is None:
                raise ValueError(
                    f"unknown token {token!r}, and this vocabulary has no {self.unk}; build it "
                    "with unknown=True, or from sentences that hold the token"
                )
            ids.append(i)
        return ids

    def encode_batch(
        self, sentences: Iterable[str | Sequence[str]], *, length: int | None = None
    ) -> Int64[Tensor, "batch seq"]:
        """The ids of several sentences: (batch, seq), padded on the right with `pad_id`.

        Args:
            sentences: texts, or lists of tokens.
            length: seq; that of the longest sentence unless given.

        Raises:
            ValueError: a sentence is longer than `length`, a token is unknown, or there is no token
                at all.
            TypeError: `sentences` is one text instead of a list.
        """
        if isinstance(sentences, str):
            raise TypeError("sentences must be a list of sentences, got one str; write [text]")
        _require_list("sentences", sentences)
        if length is not None:
            require_size("length", length)
        rows = [self.encode(sentence) for sentence in sentences]
        longest = max(map(len, rows), default=0)
        if longest == 0:
            raise ValueError("sentences hold no token at all; a batch needs at least one")
        if length is None:
            length = longest
        if longest > length:
            raise ValueError(f"a sentence has {longest} tokens, more than length={length}")
        return torch.tensor([row + [self.pad_id] * (length - len(row)) for row in rows])

    def decode(self, ids: Sequence[int] | Int64[Tensor, " seq"]) -> list[str]:
        """The tokens of one sentence's `ids`, (seq).

        Raises:
            ValueError: an id is not in the vocabulary.
        """
        if isinstance(ids, Tensor) and ids.ndim == 1:
            ids = ids.tolist()
        _require_list("ids", ids)
        ids = [require_index("each of ids", i) for i in ids]
        for i in ids:
            if not 0 <= i < len(self):
                raise ValueError(
                    f"id {i} is not in this vocabulary; ids run from 0 to {len(self) - 1}"
                )
        return [self.tokens[i] for i in ids]


def _tokens(sentence: str | Sequence[str]) -> list[str]:
    if isinstance(sentence, str):
        return tokenize(sentence)
    if not isinstance(sentence, Iterable) or isinstance(sentence, Tensor):
        kind = type(sentence).__name__
        raise TypeError(f"sentence must be a text or a list of tokens, got {kind}")
    tokens = list(sentence)
    for token in tokens:
        if not isinstance(token, str):
            kind = type(token).__name__
            raise TypeError(f"the tokens of sentence must be str, got {token!r} of type {kind}")
    return tokens


def _require_list(name: str, items: Iterable) -> None:
    if not isinstance(items, Iterable) or isinstance(items, (str, bytes, Tensor)):
        got = f"shape {tuple(items.shape)}" if isinstance(items, Tensor) else type(items).__name__
        raise TypeError(f"{name} must be a list, got {got}")
