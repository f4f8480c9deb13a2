"""What stops a run with a message for the instructor."""


class GradingError(Exception):
    """A mistake that the instructor can put right; the message says how.

    It is no ValueError: those also come out of what a student handed in, such as text that is none,
    and must not end the run of a class.
    """
