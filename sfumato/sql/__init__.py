"""SQL: text in, a typed question out. Pure: this package reads no data and knows no noise."""
