"""Studies of many trainings or many models."""
