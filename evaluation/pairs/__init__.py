"""Minimal pairs of sentences from a grammar, with exact log odds, and how a model prefers."""
