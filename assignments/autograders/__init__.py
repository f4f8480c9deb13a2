"""Grades on another platform: bundle.py packs what grades here, one.py grades one student there.

gradescope.py and classroom50.py write the file that each platform reads; entry/ is what it starts.
"""
