"""What every part uses and no part is about: files, locks, records, settings, errors, progress, processes."""
