"""What everything above computes with on the host: compiled code, threads, random numbers, distances, forks."""
