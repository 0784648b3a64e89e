"""What all languages share."""
