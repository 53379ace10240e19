"""Internal: what every module may use: parameter trees, random streams, errors, losses, files."""
