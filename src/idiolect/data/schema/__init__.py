"""Internal: what the columns of a table mean, fitted on training rows; encodes new rows alike."""
