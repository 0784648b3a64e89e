"""A model in another process, which may be written in any language: JSON lines in, JSON lines out.

The other process here is this file itself, run as a script. It knows nothing of truesource: for each line, a list of
words, it answers with a list of log probabilities, one per word and one of the end of the sentence.

    WORDS="the a dog" truesource score subprocess_model.py:model corpus/
"""

import json
import math
import os
import subprocess
import sys

WORDS = os.environ.get("WORDS", "a b c").split()


def answer(words):
    """Every word, all unknown words together and the end are equally probable."""
    return [-math.log(len(WORDS) + 2)] * (len(words) + 1)


def log_probs(sentences):
    """Ask the other process, once for all sentences."""
    lines = "".join(json.dumps(sentence) + "\n" for sentence in sentences)
    child = subprocess.run([sys.executable, __file__], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in child.stdout.splitlines()]


def model():
    """The function as a model."""
    from truesource import FunctionModel

    return FunctionModel(log_probs, vocabulary=WORDS, name="subprocess")


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))))
