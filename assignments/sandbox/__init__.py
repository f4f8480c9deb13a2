"""Runs a student's notebook, and keeps its code from what is not its own.

run.py runs a notebook; process.py starts, watches and ends the process that it runs in; kernel.py
is what that process does, and template.py what it is forked from; landlock.py and seccomp.py shut
it in, and denied.py is the table of what they deny.
"""
