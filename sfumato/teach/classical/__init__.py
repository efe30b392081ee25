"""Classical accountants and prices, kept for comparison."""
