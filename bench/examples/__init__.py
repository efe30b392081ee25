"""Examples of real work that need data which the development environment does not have."""
