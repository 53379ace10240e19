"""What a run leaves on disk: scores, facts, models, and where they came from."""
