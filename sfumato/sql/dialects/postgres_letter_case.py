"""Upper and lower case on PostgreSQL: letter by letter, as on every engine, in about the same time for all letters.

LOWER and UPPER with the collation "C" change ASCII alone, other collations depend on the server, and TRANSLATE compares
a letter with all earlier ones in its list: 9 to 30 ms for 1,000 letters of Deseret. So letters beyond ASCII are looked
up by code point in two arrays; where a text is only compared with constants, TRANSLATE gets the few letters that could
make a difference.
"""

from collections.abc import Sequence
from functools import cache

from sfumato.sql.dialects.postgres_values import A, let, quote
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.functions.costs import Argument
from sfumato.sql.functions.texts import case_pairs, lower_text, upper_text
from sfumato.sql.reserved_names import ours

C, U = ours("c"), ours("u")
BITS = 6  # of a letter's number that are its place in a block
NOWHERE = -(1 << BITS) - 1  # where a block without changes begins: outside of the array, so a look-up gives NULL
FEW = 20  # letters, up to which TRANSLATE is faster than to look each one up
CHANGES = {"lower": lower_text, "upper": upper_text}
COMPARISONS = frozenset({"=", "in", "like", "starts_with", "ends_with", "contains"})


def change_case(name: str, a: str) -> str:
    """In upper or lower case. Rows come out of UNNEST, and go into STRING_AGG, in the order of the text."""
    begins, steps = case_arrays(name)
    number = f"ASCII({C})"
    step = f"({steps})[({begins})[{number} >> {BITS}] + ({number} & {(1 << BITS) - 1})]"
    signs = f"(SELECT UNNEST(STRING_TO_ARRAY({name}({A}), NULL)) AS {C} OFFSET 0) AS {U}"
    each = f"(SELECT STRING_AGG(COALESCE(CHR({number} + {step}), {C}), '') FROM {signs})"
    return let(f"CASE WHEN OCTET_LENGTH({A}) = LENGTH({A}) THEN {name}({A}) ELSE {each} END", a=a)


@cache
def case_arrays(name: str) -> tuple[str, str]:
    """Where each block of letters begins in the second array, and there how far each letter is from its other case.
    As SQL; both arrays begin at 0."""
    steps = {ord(a): ord(b) - ord(a) for a, b in zip(*case_pairs(name), strict=True)}
    used = sorted({number >> BITS for number in steps})
    places = {block: i << BITS for i, block in enumerate(used)}
    begins = [places.get(block, NOWHERE) for block in range(used[-1] + 1)]
    found = [steps.get((block << BITS) + place, 0) for block in used for place in range(1 << BITS)]
    return integer_array(begins), integer_array(found)


def integer_array(numbers: Sequence[int]) -> str:
    return f"CAST('[0:{len(numbers) - 1}]={{{','.join(map(str, numbers))}}}' AS INTEGER[])"


# ---- compared with constants ----------------------------------------------------------------------------------------


def case_comparison(call: Call) -> tuple[int, str] | None:
    """(which argument is in upper or lower case, the letters beyond ASCII that matter), if all others are constants and
    few letters matter; otherwise None."""
    places = [i for i, one in enumerate(call.arguments) if not is_constant_text(one)]
    if call.name not in COMPARISONS or len(places) != 1:
        return None
    match call.arguments[places[0]]:
        case Call("lower" | "upper" as name, _):
            words = (constant_text(one) for one in call.arguments if is_constant_text(one))
            letters = letters_that_matter(name, frozenset().union(*words))
            return (places[0], letters) if len(letters) <= FEW else None
    return None


def is_constant_text(one: Expression) -> bool:
    match one:
        case Constant(str()) | Call("lower" | "upper", (Constant(str()),)):
            return True
    return False


def constant_text(one: Expression) -> str:
    match one:
        case Constant(str() as text):
            return text
        case Call(name, (Constant(str() as text),)):
            return CHANGES[name](text)
    raise AssertionError("unreachable")


def letters_that_matter(name: str, signs: frozenset[str]) -> str:
    """Those that change, and become one of these signs or are one. Any other letter that changes is equal to none of
    them, before and after: to a comparison with constants of these signs, it makes no difference whether it does."""
    return "".join(a for a, b in zip(*case_pairs(name), strict=True) if a in signs or b in signs)


def change_letters(name: str, letters: str, a: str) -> str:
    """In upper or lower case, but only ASCII and these letters."""
    if not letters:
        return f"{name}({a})"
    become = CHANGES[name](letters)
    body = f"TRANSLATE({name}({A}), {quote(letters)}, {quote(become)})"
    return let(f"CASE WHEN OCTET_LENGTH({A}) = LENGTH({A}) THEN {name}({A}) ELSE {body} END", a=a)


def case_cost(text: Argument) -> float:
    return 1000 + 500 * text.domain.longest


def few_letters_cost(text: Argument, letters: str) -> float:
    return 1000 + (20 + (20 + 20 * len(letters) if letters else 0)) * text.domain.longest
