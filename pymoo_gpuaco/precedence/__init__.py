"""Sequential ordering on any device: short tours in which some cities come before others."""
