"""The architectures that can be trained, each a row of two tables.

`truesource.lmtrain.architectures.settings.SETTINGS` has their settings, without torch, and
`truesource.lmtrain.architectures.networks.NETWORKS` their networks; see `truesource.lmtrain.model_registry`.
"""
