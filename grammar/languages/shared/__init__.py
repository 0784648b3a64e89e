"""Parts that all languages share: descriptions, settings, building of rules, words."""
