"""Instances and tables that are shipped with the package."""
