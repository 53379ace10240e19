"""Real sites: the same method files between machines, over a transport of plain named vectors."""
