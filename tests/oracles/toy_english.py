"""A grammar of a few words, and trees like its own, for tests of the command."""

from __future__ import annotations

TOY = """\
S -> NP VP 1.0
NP -> D N 0.7 | N 0.3
VP -> V NP 0.5 | V 0.3 | VP PP 0.2
PP -> P NP 1.0
D -> the 0.6 | a 0.4
N -> dog 0.4 | cat 0.3 | man 0.2 | park 0.1
V -> sees 0.6 | walks 0.4
P -> in 0.5 | with 0.5
"""
BANK = """\
( (S (NP (D the) (N dog)) (VP (V sees) (NP (D a) (N cat)))) )
( (S (NP (N man)) (VP (V walks))) )
( (S (NP (D the) (N cat)) (VP (V walks) (PP (P in) (NP (D the) (N park))))) )
"""
