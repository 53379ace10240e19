"""The methods, one file each, on the one contract of `algorithms.base`."""
