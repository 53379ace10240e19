"""The report as one self-contained page: the data it shows, and the file."""
