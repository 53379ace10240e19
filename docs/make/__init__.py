"""What makes the site's pages out of the package: cards of methods, references, and files that pages point to."""
