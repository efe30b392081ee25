"""From SQL text to a question. Unsupported syntax is refused with a reason, never ignored."""
