"""Random-restart hill climbers."""
