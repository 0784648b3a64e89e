"""Parsing whole corpora: shards of trees, made by many workers, which a stopped call goes on from."""
