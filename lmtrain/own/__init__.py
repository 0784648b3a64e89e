"""Custom architectures: a user's `torch.nn.Module`, trained and used like a built-in network.

``settings.py`` says what is trained and finds the code that makes the module, without torch. ``network.py`` wraps the
module and says whether the file of its code can go into the folder of the model. ``architecture.py`` tries it on random
tokens and reads a trained folder. ``hub_network.py`` and ``shared.py`` go with the code, for `transformers` to open it.
"""
