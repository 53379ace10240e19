"""The advice on federations whose truth is known, and Local beside per-client regressions on real tables."""
