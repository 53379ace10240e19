"""The advice on a federation: whether to federate, with what method, and who gains or loses by it."""
