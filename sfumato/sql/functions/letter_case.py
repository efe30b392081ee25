"""Upper and lower case, letter by letter: engines that fold more (ß to SS, by locale) would not mean the same."""

from functools import cache

LAST = 0x1E943  # the last letter that has a case
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def upper(letter: str) -> str:
    """The one letter that Unicode's simple mapping gives."""
    found = ("ẞ" if letter == "ß" else "", letter.upper(), letter.title(), letter)
    return next(one for one in found if len(one) == 1)


def lower(letter: str) -> str:
    return "i" if letter == "İ" else letter.lower()


@cache
def folded(name: str) -> tuple[str, str]:
    """The letters beyond ASCII that change, and what they become; for TRANSLATE."""
    change, python = (upper, str.upper) if name == "upper" else (lower, str.lower)
    letters = [chr(n) for n in range(128, LAST + 1) if python(chr(n)) != chr(n)]
    pairs = [(letter, change(letter)) for letter in letters if change(letter) != letter]
    return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)
