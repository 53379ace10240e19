"""Internal: tables, figures and pages of an experiment's results."""
