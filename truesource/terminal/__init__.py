"""Options from settings, console, output files, tables on the screen, and logs; only verbs use them."""
