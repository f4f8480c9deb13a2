"""Marks back to the LMS: who in its class list a student is, and the files that it imports."""
