"""A small grammar of agreement, frames and attachment with Penn labels, every sentence of which can be listed."""

from __future__ import annotations

from truesource.grammar.pcfg import PCFG

RULES = """\
S NPsg VPsg .45
S NPpl VPpl .45
S NPsg VPpl .1
NPsg DTsg NN .8
NPsg NPsg PPn .2
NPpl DTpl NNS .8
NPpl NPpl PPn .2
NPo NPsg .5
NPo NPpl .5
VPsg VBZi .4
VPsg VBZt NPo .4
VPsg VPsg PPv .2
VPpl VBPi .4
VPpl VBPt NPo .4
VPpl VPpl PPv .2
PPn INn NPo 1
PPv INv NPo 1
DTsg a .3
DTsg this .3
DTsg the .3
DTsg these .1
DTpl these .6
DTpl the .4
NN dog .5
NN cat .3
NN man .2
NNS dogs .5
NNS cats .3
NNS men .2
VBZi sleeps .5
VBZi walks .4
VBZi sees .1
VBZt sees .6
VBZt walks .3
VBZt sleeps .1
VBPi sleep .5
VBPi walk .4
VBPi see .1
VBPt see .6
VBPt walk .3
VBPt sleep .1
INn of .49
INn with .49
INn in .02
INv of .02
INv with .01
INv in .97
"""
LABELS = {
    **dict.fromkeys(("NPsg", "NPpl", "NPo"), "NP"),
    **dict.fromkeys(("VPsg", "VPpl"), "VP"),
    **dict.fromkeys(("PPn", "PPv"), "PP"),
    **dict.fromkeys(("DTsg", "DTpl"), "DT"),
    **dict.fromkeys(("VBZi", "VBZt"), "VBZ"),
    **dict.fromkeys(("VBPi", "VBPt"), "VBP"),
    **dict.fromkeys(("INn", "INv"), "IN"),
}


def agreement_grammar(*, strict: bool = False, relabel: dict[str, str] | None = None) -> PCFG:
    """The grammar; ``strict`` takes away the rules that break agreement; ``relabel`` exchanges labels."""
    rules = []
    for line in RULES.splitlines():
        parent, *children, weight = line.split()
        if not strict or (parent, *children) not in (("S", "NPsg", "VPpl"), ("DTsg", "these")):
            rules.append((parent, tuple(children), float(weight)))
    known = {parent for parent, _, _ in rules}
    labels = {name: (relabel or {}).get(LABELS.get(name, name), LABELS.get(name, name)) for name in known}
    return PCFG.from_rules(
        rules, start="S", words=lambda _, children: children[0] not in known, labels=labels, normalise=True
    )
