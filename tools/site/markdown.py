"""Markdown as repositories show it, changed to Markdown as the site's generator reads it.

The pages of docs/ are written for both. Three things differ: what may stand after the language of a fenced block, lists
that follow a paragraph without an empty line, and nested blocks, which the generator wants to be indented by four.
"""

import re
from collections.abc import Callable, Iterator

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
ITEM = re.compile(r"^(?:[-*] |\d+\. )")
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()(?P<target>[^)\s]+)(?P<rest>[^)]*\))")
SOURCE = re.compile(r"""(?P<before><(?:img|a|source)\b[^>]*?\b(?:src|href|srcset)=["'])(?P<target>[^"']+)""")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)


def outside_fences(text: str) -> Iterator[tuple[bool, str]]:
    """Each line, with whether it is prose."""
    fence = ""
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence:
            yield False, line
            if found and found["fence"].startswith(fence) and not found["info"].strip():
                fence = ""
        elif found:
            fence = found["fence"]
            language = found["info"].split()[:1]
            yield False, f"{found['indent']}{fence}{''.join(language)}"
        else:
            yield True, line


def for_site(text: str) -> str:
    """The same page, as the generator reads it."""
    lines: list[str] = []
    inside = False  # a list
    for prose, line in outside_fences(text):
        before = lines[-1] if lines else ""
        if prose and ITEM.match(line):
            if before.strip() and not inside:
                lines.append("")
            inside = True
        elif prose and line.strip() and not line.startswith(" ") and not before.strip():
            inside = False
        elif inside and line.startswith("  ") and not line.startswith("    "):
            line = "    " + line.lstrip() if prose else "  " + line
        elif inside and not prose and line.startswith("  "):
            line = "  " + line
        lines.append(line)
    return "\n".join(lines)


def change_links(text: str, change: Callable[[str], str]) -> str:
    """The page with other targets of its links and pictures; code is left alone."""
    kept: list[str] = []

    def hide(code: str) -> str:
        kept.append(code)
        return f"\x00{len(kept) - 1}\x00"

    blocks: list[str] = []
    for prose, line in outside_fences(text):
        blocks.append(line if prose else hide(line))
    page = CODE.sub(lambda match: hide(match[0]), "\n".join(blocks))
    page = LINK.sub(lambda match: match[1] + change(match["target"]) + match["rest"], page)
    page = SOURCE.sub(lambda match: match["before"] + change(match["target"]), page)
    while "\x00" in page:
        page = re.sub("\x00(\\d+)\x00", lambda match: kept[int(match[1])], page)
    return page


def title_of(text: str) -> str:
    """The first heading of a page, as text."""
    for prose, line in outside_fences(text):
        if prose and line.startswith("# "):
            return line[2:].replace("`", "").strip()
    raise ValueError("the page has no heading: begin it with '# Title'")


def escape(prose: str) -> str:
    """A docstring's sentence as Markdown that shows it letter by letter; only `code` keeps its meaning."""
    kept = re.split(r"(`[^`\n]+`)", prose)
    return "".join(part if n % 2 else re.sub(r"([\\*_\[\]<>|#~])", r"\\\1", part) for n, part in enumerate(kept))
