"""Where a file of the repository is shown in the site, and the tree of pages that the generator is given.

A page of docs/ keeps its place. The pages at the top of the repository are under `project/`. A file of code that some
page links to is shown under `source/`, so that every link works without a network; a folder is a list of its files.
"""

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from tools.site.markdown import change_links, for_site, title_of

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "bash", ".sql": "sql", ".js": "javascript", ".html": "html"}
PICTURES = {".png", ".svg", ".jpg"}
# Pages that tools/site/reference.py writes when the site is built; other pages link to them as if they lay in docs/.
PACKAGES = (
    "loss", "mechanisms", "sampling", "noise", "ledger", "learn", "local", "audit", "groups", "dependent", "plots",
)  # fmt: skip
GENERATED = (
    *(f"reference/{name}.md" for name in ("sql", "policy", "service", "command-line", "errors", "api/index")),
    *(f"reference/api/{name}.md" for name in PACKAGES),
    "nist-800-226.md",
)
BINARY = {".pyc", ".woff2", ".ico"}
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.I)


class BrokenLink(Exception):
    """A page links to something that is not in the repository."""


def place(path: PurePosixPath, is_folder: bool) -> PurePosixPath:
    """Where the site shows a path of the repository, relative to its root."""
    parts = path.parts
    if parts[:1] == ("docs",):
        inside = PurePosixPath(*parts[1:])
        return inside / "index.md" if is_folder else inside
    if len(parts) == 1 and path.suffix == ".md":
        return PurePosixPath("project") / path.name.lower()
    if path.suffix in PICTURES:
        return PurePosixPath("source") / path
    return PurePosixPath("source") / path / "index.md" if is_folder else PurePosixPath("source") / f"{path}.md"


def label(path: Path) -> str:
    """What a list of files calls one: a page by its title."""
    return title_of(path.read_text("utf-8")) if path.suffix == ".md" else path.name


@dataclass
class Staging:
    """Pages on their way into a folder; what they link to follows."""

    folder: Path
    root: Path = ROOT
    wanted: list[PurePosixPath] = field(default_factory=list)
    made: list[tuple[PurePosixPath, str]] = field(default_factory=list)  # generated pages of docs/, not in it

    def generated(self, name: str, text: str) -> None:
        """A page that is written when the site is built, as if it lay in docs/."""
        self.made.append((PurePosixPath("docs") / name, text))

    def stage_docs(self) -> None:
        for page in [*sorted(self.root.glob("*.md")), *sorted((self.root / "docs").rglob("*"))]:
            if page.is_file():
                self.stage(page.relative_to(self.root))
        for path, text in self.made:
            self.write(place(path, False), self.page(text, path.parent, place(path, False)))

    def stage_linked(self) -> None:
        """Show what pages link to outside of docs/: files of code, folders, pictures."""
        while self.wanted:
            path = self.wanted.pop()
            if not (self.folder / place(path, (self.root / path).is_dir())).exists():
                self.stage(Path(path))

    def stage(self, path: Path) -> None:
        there, here = self.root / path, PurePosixPath(path.as_posix())
        target = place(here, there.is_dir())
        if there.is_dir():
            self.write(target, self.listing(there, here, target))
        elif path.suffix in PICTURES or (path.suffix != ".md" and here.parts[0] == "docs"):
            (self.folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(there, self.folder / target)
        elif path.suffix == ".md":
            self.write(target, self.page(there.read_text("utf-8"), here.parent, target))
        else:
            code = there.read_text("utf-8").rstrip("\n")
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
            shown = f'{fence}{LANGUAGES.get(path.suffix, "text")} linenums="1"\n{code}\n{fence}\n'
            self.write(target, f"---\nsearch:\n  exclude: true\n---\n# {path.as_posix()}\n\n{shown}")

    def page(self, text: str, folder: PurePosixPath, target: PurePosixPath) -> str:
        """A page with its links changed to where the site shows their targets."""
        return for_site(change_links(text, lambda link: self.link(link, folder, target)))

    def link(self, link: str, folder: PurePosixPath, target: PurePosixPath) -> str:
        if ABSOLUTE.match(link) or link.startswith("#"):
            return link
        path, hash_, anchor = unquote(link).partition("#")
        here = PurePosixPath(os.path.normpath(folder / path))
        there = self.root / here
        if not there.exists():
            if any(here == path for path, _ in self.made):
                return os.path.relpath(place(here, False), target.parent) + hash_ + anchor
            raise BrokenLink(f"{target}: {link} leads nowhere")
        self.wanted.append(here)
        return os.path.relpath(place(here, there.is_dir()), target.parent) + hash_ + anchor

    def listing(self, there: Path, here: PurePosixPath, target: PurePosixPath) -> str:
        """The page of a folder: its files, each as a link."""
        files = sorted(p for p in there.iterdir() if not p.name.startswith((".", "__")) and p.suffix not in BINARY)
        entries = "\n".join(f"- [{label(p)}]({self.link(p.name, here, target)})" for p in files)
        if here.parts[0] == "docs":
            return f"# {here.name.capitalize()}\n\n{entries}\n"
        return f"---\nsearch:\n  exclude: true\n---\n# {here}\n\n{entries}\n"

    def write(self, target: PurePosixPath, text: str) -> None:
        (self.folder / target).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / target).write_text(text, "utf-8")
