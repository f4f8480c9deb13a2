"""Written dates: read back by another parser, days held out, spans, and the score of alignment."""

import datetime
import random
import re

import pytest
import torch

from attention.trained.dates import (
    END,
    FIRST,
    HELD_OUT,
    LAST,
    LETTERS,
    MONTHS,
    SIGNS,
    START,
    WrittenDate,
    alignment,
    draw_dates,
    encode,
    held_out_dates,
    write_date,
)
from attention.trained.dates.data import in_words, year_in_words

DATES = draw_dates(4000, random.Random(5)) + held_out_dates()

VALUES = {}
for i, words in enumerate(
    """one first, two second, three third, four fourth, five fifth, six sixth, seven seventh,
    eight eighth, nine ninth, ten tenth, eleven eleventh, twelve twelfth, thirteen thirteenth,
    fourteen fourteenth, fifteen fifteenth, sixteen sixteenth, seventeen seventeenth,
    eighteen eighteenth, nineteen nineteenth, twenty twentieth, thirty thirtieth, forty, fifty,
    sixty, seventy, eighty, ninety""".split(","),  # noqa: SIM905
    start=1,
):
    VALUES |= dict.fromkeys(words.split(), i if i <= 20 else 10 * (i - 18))
ABBREVIATIONS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def number(words):
    """The value of "4th", "04", "twenty-first", "nineteen oh five", "two thousand and three"."""
    if match := re.match(r"\d+", words):
        return int(match[0])
    groups = [0]  # "nineteen seventy-three" is 19 and 73
    for word in re.split("[ -]", words):
        if word in ("hundred", "thousand"):
            groups[-1] *= 100 if word == "hundred" else 1000
        elif word == "oh":
            groups.append(0)
        elif word != "and":
            value, so_far = VALUES[word], groups[-1]
            # A unit goes on after a ten ("seventy-three"), and anything after a thousand.
            if so_far % 1000 == 0 or (so_far < 100 and so_far % 10 == 0 and value < 10):
                groups[-1] += value
            else:
                groups.append(value)
    return groups[0] if len(groups) == 1 else 100 * groups[0] + groups[1]


def read(text):
    """The day, and the weekday if one is written: from the text alone, by way of its month."""
    weekday = None
    if match := re.match(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? ", text):
        weekday, text = match[1], text[match.end() :]
    month = re.search(rf"\b({'|'.join(ABBREVIATIONS)})[a-z]*\b", text)
    before, after = text[: month.start()].strip(), text[month.end() :].strip()
    if before:
        day, year = before.removeprefix("the ").removesuffix(" of"), after.removeprefix(", ")
    else:
        one = r"(?:the )?(\d+(?:st|nd|rd|th)?|[a-z]+-[a-z]+(?:st|nd|rd|th)|[a-z]+(?:st|nd|rd|th))"
        match = re.match(one + ",? ", after)
        day, year = match[1], after[match.end() :]
    month = ABBREVIATIONS.index(month[1]) + 1
    return datetime.date(number(year.strip(", ")), month, number(day)), weekday


def test_every_way_of_writing_is_read_back_as_the_same_day():
    for date in DATES:
        day, weekday = read(date.text)
        assert day.isoformat() == date.iso, date.text
        assert weekday in (None, day.strftime("%a").lower())


def test_every_year_and_every_day_of_a_year_is_written_in_words_and_read_back():
    for year in range(1900, 2100):
        assert number(year_in_words(year)) == year
    assert [number(in_words(n)) for n in range(1, 100)] == list(range(1, 100))


def test_ways_of_writing_are_those_of_people():
    texts = [date.text for date in DATES]
    wanted = (
        r"^the \d+(st|nd|rd|th) of", r"^[a-z]+ \d+, \d{4}$", "hundred$", "oh [a-z]+$",
        "two thousand and", "^mon ", "^sunday, ", r"\bsep\b", r"\b11th\b", r"\b22nd\b",
    )  # fmt: skip
    for pattern in wanted:
        assert any(re.search(pattern, text) for text in texts), pattern
    wrong = re.compile(r"1[123](st|nd|rd)|\b[23]?[123]th|the \d+ ")
    assert not any(wrong.search(text) for text in texts)
    assert len(set(texts)) > 0.99 * len(texts)


def test_held_out_days_are_held_out_in_any_form():
    held_out = {datetime.date.fromisoformat(date.iso) for date in held_out_dates()}
    assert held_out == HELD_OUT and len(held_out) == 2000 == len(held_out_dates())
    drawn = draw_dates(20_000, random.Random(0))
    read_days = {read(date.text)[0] for date in drawn}
    assert not read_days & HELD_OUT
    assert all(FIRST <= day <= LAST for day in read_days)
    assert len(read_days) > 15_000, "and all the other days can be drawn"


def test_the_same_seed_draws_the_same_dates():
    assert draw_dates(50, random.Random(3)) == draw_dates(50, random.Random(3))
    assert draw_dates(50, random.Random(3)) != draw_dates(50, random.Random(4))
    assert held_out_dates() == held_out_dates()


def test_the_spans_hold_the_year_the_month_and_the_day():
    for date in DATES:
        year, month, day = map(int, date.iso.split("-"))
        assert number(date.text[date.year]) == year
        assert date.text[date.month] in (MONTHS[month - 1], MONTHS[month - 1][:3])
        assert number(date.text[date.day]) == day
        rest = list(date.text)
        for part in (date.year, date.month, date.day):
            rest[part] = " " * (part.stop - part.start)
        words = set("".join(rest).replace(",", " ").split())
        weekday = datetime.date(year, month, day).strftime("%A").lower()
        assert words <= {"the", "of", weekday, weekday[:3]}, date.text


def test_a_batch_holds_letters_and_answers():
    letters, signs = encode(DATES[:40])
    assert letters.shape == (40, max(len(date.text) for date in DATES[:40]))
    assert signs.shape == (40, 12)
    for row, answer, date in zip(letters, signs, DATES[:40], strict=True):
        assert "".join(LETTERS.decode(row[: len(date.text)])) == date.text
        assert not row[len(date.text) :].any()
        assert "".join(SIGNS.decode(answer[1:-1])) == date.iso
        assert (answer[0], answer[-1]) == (START, END)
    assert len(encode(DATES)) == 2, "no letter of any date is unknown"


# "4 may 1973" and "may 4, 1973": the letters that say each part, counted by hand.
BY_HAND = [
    WrittenDate("4 may 1973", "1973-05-04", slice(6, 10), slice(2, 5), slice(0, 1)),
    WrittenDate("may 4, 1973", "1973-05-04", slice(7, 11), slice(0, 3), slice(4, 5)),
]


def looking_at(*columns):
    """Eleven steps for each date, each with all its weight on one letter."""
    weights = torch.zeros(len(columns), 11, 12)
    for row, steps in zip(weights, columns, strict=True):
        row[torch.arange(11), torch.tensor(steps)] = 1.0
    return weights


def test_the_dates_by_hand_are_what_the_writer_would_say():
    for day_format in BY_HAND:
        drawn = (write_date(datetime.date(1973, 5, 4), random.Random(i)) for i in range(2000))
        assert day_format in drawn


def test_alignment_of_maps_made_by_hand():
    perfect = looking_at([6, 7, 8, 9, 11, 2, 4, 11, 0, 0, 11], [7, 8, 9, 10, 5, 0, 1, 5, 4, 4, 5])
    assert alignment(perfect, BY_HAND) == (1.0, 1.0, 1.0)
    assert alignment(perfect, BY_HAND).mean == 1.0
    # The other date's map: years overlap in three letters, months in one, days in none.
    assert alignment(perfect.flip(0), BY_HAND) == (6 / 8, 1 / 4, 0.0)
    # Year steps at the month, month steps at the day, day steps at the comma or the space.
    shifted = looking_at([2] * 4 + [0] * 3 + [1] * 4, [1] * 4 + [4] * 3 + [5] * 4)
    assert alignment(shifted, BY_HAND) == (0.0, 0.0, 0.0)
    # Half of each step's weight, and one of the two dates.
    assert alignment((perfect + shifted) / 2, BY_HAND) == (0.5, 0.5, 0.5)
    assert alignment(torch.stack((perfect[0], shifted[1])), BY_HAND) == (0.5, 0.5, 0.5)
    # One step of the four that write the year, and one of the two that write the day.
    some = looking_at([9] + [1] * 7 + [0, 1, 1], [10] + [5] * 7 + [4, 5, 5])
    assert alignment(some, BY_HAND) == (0.25, 0.0, 0.5)


def test_the_steps_of_the_hyphens_and_of_the_end_do_not_count():
    perfect = looking_at([6] * 4 + [9] + [2] * 2 + [9] + [0] * 2 + [9])
    for step in (4, 7, 10):
        perfect[:, step] = torch.rand(12)
    assert alignment(perfect, BY_HAND[:1]) == (1.0, 1.0, 1.0)


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("shape", [(1, 11, 12), (2, 9, 12), (2, 11, 10)])
def test_weights_of_other_dates_are_refused(shape):
    with pytest.raises(ValueError, match=r"batch 2, target at least 10 and key at least 11, got "):
        alignment(torch.zeros(shape), BY_HAND)
