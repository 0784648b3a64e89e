"""Architectures of one's own: a person's `torch.nn.Module`, trained and used like a built-in network.

``settings.py`` says what is trained, ``factory.py`` makes the module (both without torch), ``network.py`` wraps it,
``checks.py`` tries it on random tokens, ``loading.py`` reads a trained folder. ``code_copy.py`` says whether the file
of the code can go into the folder; ``hub_network.py`` and ``shared.py`` go with it, for `transformers` to open it.
"""
