"""A grammar of words that share many letters, so that few pieces spell them in many ways."""

SEAT_GRAMMAR = """\
S -> NP VP 1.0
NP -> D N 0.7 | N 0.3
VP -> V NP 0.4 | V 0.6
D -> the 0.6 | a 0.4
N -> cat 0.5 | seat 0.3 | heath 0.2
V -> sees 0.6 | eats 0.4
"""
