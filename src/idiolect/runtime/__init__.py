"""Internal: run a federation as one compiled program: rounds, sampling, devices, evaluation, checkpoints."""
