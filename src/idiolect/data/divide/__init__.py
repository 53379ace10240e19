"""Internal: divide samples among clients, and each client's into training, validation and test."""
