"""The CPU engine: functions compiled by numba, spread over all cores by threads."""
