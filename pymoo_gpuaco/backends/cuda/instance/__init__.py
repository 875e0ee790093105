"""The instance on the device: cities, distances and lists of near cities."""
