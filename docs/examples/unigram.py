"""A unigram model: the share of each word in the training sentences of a corpus, whatever stands before it.

CORPUS=corpus truesource score unigram.py:unigram corpus/
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from truesource import FunctionModel


def unigram():
    """Count, and give one to unknown words."""
    corpus = Path(os.environ.get("CORPUS", "corpus"))
    texts = [
        text for file in sorted(corpus.glob("data/train-*.parquet")) for text in pq.read_table(file)["text"].to_pylist()
    ]
    counts = Counter(word for text in texts for word in text.split())
    words = sorted(counts)
    share = np.log([*(counts[word] for word in words), 1, len(texts)])  # the words, <unk>, the end of a sentence
    share -= np.log(np.exp(share).sum())

    def distributions(sentences):
        return [np.tile(share, (len(sentence) + 1, 1)) for sentence in sentences]

    return FunctionModel(distributions=distributions, vocabulary=words, name="unigram")
