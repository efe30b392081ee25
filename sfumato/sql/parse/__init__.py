"""From the parser's tree to a question. Only what is understood in full is read; the rest is refused, in words."""
