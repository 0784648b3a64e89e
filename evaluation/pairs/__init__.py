"""Minimal pairs of sentences from a grammar, with exact log odds, and which sentence a model prefers."""
