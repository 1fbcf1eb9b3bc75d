"""Facts and tables that several commands, or a command and a page, show of a model."""
