"""What the sentences of a pair differ in: one module each."""
