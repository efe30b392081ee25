"""The survey as a page for browsers: static files, to be served by anything that serves files."""

import json
from importlib.resources import files
from pathlib import Path

from sfumato.errors import InvalidParameter
from sfumato.local.survey.design import Design

CLIENT = files("sfumato.local.survey") / "client"
SHIPPED = ("survey.js", "page.js", "style.css")


def client_file(name: str) -> str:
    """The text of a file of the browser client."""
    return (CLIENT / name).read_text(encoding="utf-8")


def write_page(design: Design, folder: Path) -> list[Path]:
    """Write the page of a survey to a folder, which must be new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidParameter(
            "the page needs a folder of its own.\n  found:  a file, or a folder with files in it\n"
            "  do:     name a new folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"index.html": client_file("survey.html"), **{name: client_file(name) for name in SHIPPED}}
    text = json.dumps(design.text).replace("</", "<\\/")  # harmless even if somebody puts it into a page
    texts["design.js"] = f'"use strict";\nconst DESIGN = {text};\nconst HASH = "{design.hash}";\n'
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]
