"""The assignments of the book: an nbgrader course, and what hands it out and grades it."""
