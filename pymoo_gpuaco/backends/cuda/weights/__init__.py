"""What ants read of trails and distances: the weights of edges, row by row."""
