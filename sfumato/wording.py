"""Numbers and nouns as people read them: the one place for plurals, percentages and short numbers."""

import math


def plural(count: int, noun: str) -> str:
    """1 row, 2 rows."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def format_share(share: float) -> str:
    """A share as a percentage; a share below 1 is never written as 100 %."""
    return f"{100 * min(share, 0.9999 if share < 1 else 1):.4g} %"


def short_number(number: float, digits: int = 3) -> str:
    """One number with so many digits and thousands set apart: 56,400 rather than 5.64e+04."""
    if not math.isfinite(number) or not number:
        return f"{number:g}"
    size = math.floor(math.log10(abs(number)))
    if size < -6:
        return f"{number:.{digits}g}"
    text = f"{round(number, digits - 1 - size):,.{max(0, digits - 1 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
