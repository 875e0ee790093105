"""Window search: threads kick and repair windows of one tour in parallel and commit the improvements."""
