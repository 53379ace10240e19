"""Internal: parameter trees, random streams, errors, losses and files, used by every module."""
