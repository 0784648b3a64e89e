"""Files, locks, records, settings, errors, progress and processes, which all packages use."""
