"""The one command, `truesource`: one module a verb."""
