"""Tables, figures and numbers as text."""
