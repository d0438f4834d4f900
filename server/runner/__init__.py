"""Runs a person's PyTorch code for the Verifier, which is another process and decides everything.

Nothing is imported here but Python's own library and torch. What is said over the channel is in `wire`, what is asked in `child`.
"""
