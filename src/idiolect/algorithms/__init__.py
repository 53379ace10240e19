"""The methods, one file each; the classes are exported by `idiolect`, all else is internal."""
