"""Runs a student's notebook, and keeps its code from what is not its own.

run.py runs a notebook; kernel.py is the process that it runs in; landlock.py and seccomp.py shut
that in, and denied.py is the table of what they deny.
"""
