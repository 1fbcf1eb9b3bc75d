"""Ways to evaluate a model that read its weights only."""
