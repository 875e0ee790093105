"""Base of all computation on the host: compiled code, threads, random numbers, distances, forks."""
