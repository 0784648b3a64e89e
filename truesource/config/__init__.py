"""The configuration of an experiment: one YAML file, checked key by key."""
