"""The book's questions for an LMS: with choices, marked by it, and with the reason as feedback.

    python -m assignments.questions

writes `moodle.xml`, `qti21.zip` and `canvas-qti.zip` to `dist/questions/`. A question says nothing
that stands elsewhere: its stem and its reason come from the questions at the end of a chapter
(`sources.py`) or from a mistake in the guide for instructors, with the words of the check that
names it. The files in `bank/`, one for each chapter, add what an LMS needs: the choices, and for
each wrong one why it is wrong. `bank.py` puts the two together, `text.py` turns Markdown into
HTML, and `moodle.py`, `qti21.py` and `canvas.py` write one format each.
"""
