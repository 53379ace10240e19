"""Internal: encode columns, labels, images and signals as numbers, fitted on training rows."""
