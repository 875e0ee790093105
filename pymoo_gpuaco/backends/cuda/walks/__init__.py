"""The ways to build tours, one kernel each."""
