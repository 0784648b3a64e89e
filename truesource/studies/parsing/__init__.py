"""Parsing whole corpora: shards of trees, made by many workers; a stopped call resumes."""
