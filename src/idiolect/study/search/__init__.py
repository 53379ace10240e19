"""Settings tried, and chosen on validation data."""
