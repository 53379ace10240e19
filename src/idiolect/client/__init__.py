"""What a method sees of one client."""
