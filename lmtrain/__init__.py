"""Language models trained on a corpus: tokenisers, architectures, training, scoring."""

import os

if __name__ != "truesource.lmtrain":
    raise ImportError("this package is a part of truesource: import truesource.lmtrain")

#: read when torch is imported: a thread that waits for another one leaves its core to other programs. On a busy machine
#: this trains networks up to 1.7 times as fast, on a quiet one it costs up to 12% (`benchmarks/threads.py`)
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
