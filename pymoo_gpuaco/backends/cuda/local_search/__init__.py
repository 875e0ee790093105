"""Local search of tours on the device."""
