"""End of the caption of a table of learning curves."""

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.show.records import Record
from truesource.grammar.support.printable import counted


def extent(record: Record) -> str:
    """Describe the tokens of a model of pieces, and the sentences of the exact divergence; empty if not needed."""
    of_pieces = parts_of(record["signature"]).get("reading", "").startswith("pieces")
    text = "; tokens: words and sentence ends" if of_pieces else ""
    exact = next((each for each in record.get("records", ()) if (each["name"], each["by"]) == ("kl", "all")), None)
    if exact is None:
        return text
    sentences = int(parts_of(exact["signature"])["sentences"])
    return f"{text}; exact KL: over {exact['tokens']:,.0f} tokens of {counted(sentences, 'sentence')}"
