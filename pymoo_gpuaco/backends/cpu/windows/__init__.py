"""Window search: windows of one tour are kicked and repaired in parallel, and improvements are committed."""
