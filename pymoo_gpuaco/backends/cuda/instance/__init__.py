"""The instance on the device: cities, distances and candidate lists."""
