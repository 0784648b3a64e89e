"""Stage of the explanation: its trainings, results and section."""
