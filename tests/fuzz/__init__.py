"""Questions written from the grammar of what is allowed, and what must hold for each of them."""
