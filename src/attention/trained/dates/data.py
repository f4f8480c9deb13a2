"""Dates as people write them, letter by letter, and their answers, sign by sign.

Each is a day from 1900 to 2099, written in one of many ways. 2,000 days are held out: training
never draws one of them, in any way of writing.
"""

import datetime
import random
import string
from typing import NamedTuple

from jaxtyping import Int64
from torch import Tensor

from attention.arguments import require_size
from attention.text import Vocabulary

FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
HELD_OUT = frozenset(
    datetime.date.fromordinal(n)
    for n in random.Random(0).sample(range(FIRST.toordinal(), LAST.toordinal() + 1), 2000)
)
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth", "twenty": "twentieth", "thirty": "thirtieth",
}  # fmt: skip
ORDERS = (
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "the {day} of {month}, {year}",
    "{month} the {day} {year}",
)
LETTERS = Vocabulary([list(string.ascii_lowercase + string.digits + " ,-")], unknown=False)
SIGNS = Vocabulary([["<start>", "<end>", *string.digits, "-"]], unknown=False)
SIGN_NAMES = [sign.strip("<>") for sign in SIGNS.tokens]  # as pictures write them
START, END = SIGNS.ids["<start>"], SIGNS.ids["<end>"]
STEPS = {"year": slice(0, 4), "month": slice(5, 7), "day": slice(8, 10)}  # of "1973-03-04"


class WrittenDate(NamedTuple):
    """A day as somebody wrote it, and which letters say its year, its month and its day.

    Attributes:
        text: the letters, all lower-case.
        iso: the answer, such as "1973-03-04".
        year: the letters of the year; text[year] is "1973" or "nineteen seventy-three".
        month: the letters of the month.
        day: the letters of the day of the month. The weekday, "the", "of" and commas say none of
            these.
    """

    text: str
    iso: str
    year: slice
    month: slice
    day: slice


def in_words(number: int) -> str:
    """Write a number below 100 in words, "seventy-three"."""
    if number < 20:
        return ONES[number]
    tens, ones = divmod(number, 10)
    return f"{TENS[tens]}-{ONES[ones]}" if ones else TENS[tens]


def ordinal_in_words(number: int) -> str:
    """Write an ordinal number below 100 in words, "thirty-first"."""
    *tens, last = in_words(number).split("-")
    return "-".join([*tens, ORDINALS.get(last, last + "th")])


def year_in_words(year: int) -> str:
    """Write a year in words: "nineteen oh five", "two thousand and three", "twenty thirty-one"."""
    century, rest = divmod(year, 100)
    if century == 20 and rest < 10:
        return "two thousand" + (f" and {ONES[rest]}" if rest else "")
    if rest == 0:
        return f"{ONES[century]} hundred"
    return f"{in_words(century)} {'oh ' if rest < 10 else ''}{in_words(rest)}"


def write_date(day: datetime.date, rng: random.Random) -> WrittenDate:
    """Write a day in one of the ways in which people write it.

    Args:
        day: from 1900 to 2099.
        rng: where the choices come from.

    Example:
        >>> import datetime, random
        >>> from attention.trained.dates import write_date
        >>> written = write_date(datetime.date(1973, 3, 4), random.Random(2))
        >>> written.text, written.iso
        ('fourth march 1973', '1973-03-04')
        >>> written.text[written.day], written.text[written.month], written.text[written.year]
        ('fourth', 'march', '1973')
    """
    order = rng.choice(ORDERS)
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day // 10 != 1 else 0, "th")
    days = [f"{day.day}{suffix}", ordinal_in_words(day.day)]
    if "the" not in order:
        days.append(str(day.day))
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    words = {
        "year": rng.choice([str(day.year), year_in_words(day.year)]),
        "month": rng.choice([month, month, month[:3]]),
        "day": rng.choice(days),
    }
    text = rng.choice(["", f"{weekday}, ", f"{weekday[:3]} "])
    spans = {}
    for between, part, *_ in string.Formatter().parse(order):
        start = len(text) + len(between)
        text += between + words[part]
        spans[part] = slice(start, len(text))
    return WrittenDate(text, day.isoformat(), **spans)


def draw_dates(count: int, rng: random.Random) -> list[WrittenDate]:
    """Draw dates to learn from, of any day that is not in `HELD_OUT`.

    Args:
        count: how many.
        rng: where the days and the ways of writing come from.

    Example:
        >>> import random
        >>> from attention.trained.dates import draw_dates
        >>> draw_dates(1, random.Random(0))[0][:2]
        ('thursday, october the fifteenth 2048', '2048-10-15')
    """
    require_size("count", count)
    dates: list[WrittenDate] = []
    while len(dates) < count:
        day = datetime.date.fromordinal(rng.randint(FIRST.toordinal(), LAST.toordinal()))
        if day not in HELD_OUT:
            dates.append(write_date(day, rng))
    return dates


def held_out_dates() -> list[WrittenDate]:
    """Write every day of `HELD_OUT` once, the same at every call.

    Example:
        >>> from attention.trained.dates import held_out_dates
        >>> len(held_out_dates()), held_out_dates()[0].text
        (2000, 'tenth apr 1926')
    """
    rng = random.Random(1)
    return [write_date(day, rng) for day in rng.sample(sorted(HELD_OUT), len(HELD_OUT))]


def encode(
    dates: list[WrittenDate],
) -> tuple[Int64[Tensor, "batch key"], Int64[Tensor, "batch signs"]]:
    """Look up the ids of the letters and of the answers' signs.

    Args:
        dates: as `draw_dates` returns them.

    Returns:
        letters (batch, key), padded, and signs (batch, 12), from <start> to <end>.

    Example:
        >>> from attention.trained.dates import SIGNS, encode, held_out_dates
        >>> letters, signs = encode(held_out_dates()[:2])
        >>> letters.shape, " ".join(SIGNS.decode(signs[0]))
        (torch.Size([2, 44]), '<start> 1 9 2 6 - 0 4 - 1 0 <end>')
    """
    return (
        LETTERS.encode_batch([list(date.text) for date in dates]),
        SIGNS.encode_batch([["<start>", *date.iso, "<end>"] for date in dates]),
    )
