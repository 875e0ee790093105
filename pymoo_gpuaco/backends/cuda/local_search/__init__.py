"""Local search of tours at hand."""
