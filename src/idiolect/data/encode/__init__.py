"""From columns, labels and signals to numbers, fitted on training rows."""
