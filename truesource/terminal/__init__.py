"""Options from settings, console, output files, tables on the screen, logs; for verbs alone."""
