"""Window search: thousands of warps change good tours in a few places each."""
