"""Window search: parts of one tour are kicked and repaired side by side, and what gets better is committed."""
