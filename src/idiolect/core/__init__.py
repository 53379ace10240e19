"""What every module may use: trees of parameters, randomness, errors, losses, files."""
