"""`make docs`: stage the pages, let the generator write the site, and check every link of what it wrote."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tools.site.check_links import complaints
from tools.site.navigation import navigation
from tools.site.reference import pages
from tools.site.stage import ROOT, Staging

HERE = Path(__file__).parent
PAGES, SITE = ROOT / "build" / "pages", ROOT / "site"


def stage(folder: Path) -> None:
    """All pages of the site: written by hand, generated, and what they link to."""
    shutil.rmtree(folder, ignore_errors=True)
    staging = Staging(folder)
    for name, text in pages().items():
        staging.generated(name, text)
    staging.stage_docs()
    staging.stage_linked()
    (folder / "assets").mkdir(exist_ok=True)
    for name in ("site.css", "site.js", "iframe-worker.js"):
        shutil.copyfile(HERE / name, folder / "assets" / name)


def main() -> int:
    stage(PAGES)
    settings = PAGES.parent / "mkdocs.yml"
    own = {"INHERIT": str(HERE / "settings.yml"), "docs_dir": str(PAGES), "site_dir": str(SITE)}
    settings.write_text(yaml.safe_dump({**own, "nav": navigation(PAGES)}, allow_unicode=True), "utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "--config-file", str(settings)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    if code := subprocess.run(command, check=False, env=quiet).returncode:
        return code
    wrong = complaints(SITE)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    found = len(list(SITE.rglob("*.html")))
    print(f"site/index.html: {found} pages, {len(wrong)} broken links or requests to elsewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
