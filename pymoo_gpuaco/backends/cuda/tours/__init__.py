"""Whole tours on the device: their exact lengths, and the greedy one."""
