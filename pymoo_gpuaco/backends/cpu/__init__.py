"""The CPU engine: compiled functions, spread over all cores by threads."""
