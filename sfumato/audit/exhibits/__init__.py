"""The exhibits of the audit: a file for each part of the package, with a tuple EXHIBITS; see `audit/collection.py`."""
