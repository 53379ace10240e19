"""Who gets which samples, and which of them are for training, validation and testing."""
