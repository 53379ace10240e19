"""What a report says, as data: made once, from a store or from files, and drawn by everything else."""
