"""Checks cut into pieces, which are recorded in a journal and evaluated by several processes."""
