"""The site of the documentation: pages by reader, a reference from docstrings and registries, all of it offline."""
