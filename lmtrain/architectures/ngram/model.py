"""N-gram models, as training and loading see them."""

from __future__ import annotations

from truesource.lmtrain.architectures.base import CountingArchitecture
from truesource.lmtrain.architectures.ngram.models import load_ngram
from truesource.lmtrain.architectures.ngram.settings import NgramSettings
from truesource.lmtrain.architectures.ngram.training import train_ngram

ARCHITECTURE = CountingArchitecture(NgramSettings, train=train_ngram, load=load_ngram)
