"""Base of all computation on the host: compiled code, threads, forks, random numbers, deadlines, exported states."""
