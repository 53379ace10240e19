"""The drill: a federation of real processes, and all that happens to one in months, from start to audit."""
