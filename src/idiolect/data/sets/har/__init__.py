"""Internal: Human Activity Recognition Using Smartphones (UCI HAR)."""
