"""Language models trained on a corpus: tokenisers, architectures, training, scoring."""

import os

if __name__ != "truesource.lmtrain":
    raise ImportError("this package is a part of truesource: import truesource.lmtrain")

#: read when torch is imported: a thread that waits for another one soon leaves its core to other programs. Torch's own
#: 300,000 turns make small networks several times as slow on a busy machine; without any turn, small networks lose a
#: third of their speed on a quiet one (docs/howto/hardware.md)
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
