"""Beliefs in the hidden states of networks: how much of the truth's state a linear map reads off them."""
