"""Models that exist, loaded before anything is made."""
