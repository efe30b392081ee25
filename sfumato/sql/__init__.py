"""SQL: text in, a typed question out. Pure: it touches no data and knows no noise."""
