"""What `mkdocs build` is told: the site has README.md as its index, and whatever the documents lead to.

In the repository links lead from docs/ to the folders beside it. A site has docs/ alone. So every document
that is reached becomes a page, every other file that is named is copied, and links are written as the site
has them. README.md's are absolute, for PyPI shows it too.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)\s#]*)(#[^)\s]*)?(\))")
WORDS = re.compile(r"\[([^\]]+)\]\(([^)\s:#]+)\)")
AT_HOME = re.compile(r"(?<=\]\()https://github.com/amqpgate/amqpgate/(?:blob|raw)/main/")
FENCED = re.compile(r"(^[ ]*```.*?^[ ]*```$)", re.DOTALL | re.MULTILINE)


def in_site(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/")


def in_repository(uri: str) -> str:
    """The way back."""
    if uri == "index.md":
        return "README.md"
    return f"docs/{uri}" if (ROOT / "docs" / uri).is_file() else uri


def targets(path: str, text: str) -> list[str]:
    """Files of the repository that a document leads to."""
    prose = AT_HOME.sub("", FENCED.sub("", text))
    found = [beside(path, match[2]) for match in LINK.finditer(prose) if match[2]]
    return [name for name in found if (ROOT / name).is_file()]


def beside(path: str, target: str) -> str:
    """What a link of a document leads to, from the repository's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is reached from the README, step by step."""
    seen, waiting = set(), ["README.md"]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        if files.get_file_from_path(in_site(path)) is None:
            files.append(File.generated(config, in_site(path), abs_src_path=str(ROOT / path)))
        if path.endswith(".md"):
            waiting += targets(path, (ROOT / path).read_text())
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them; of a folder, which no site has, the words alone."""
    path = in_repository(page.file.src_uri)

    def written(match: re.Match[str]) -> str:
        target, anchor = match[2], match[3] or ""
        if not target or "://" in target:
            return match[0]
        name = beside(path, target)
        if not (ROOT / name).is_file():
            return match[0]
        here = posixpath.dirname(page.file.src_uri) or "."
        return f"]({posixpath.relpath(in_site(name), here)}{anchor})"

    def without_folders(match: re.Match[str]) -> str:
        return match[1] if (ROOT / beside(path, match[2])).is_dir() else match[0]

    parts = FENCED.split(AT_HOME.sub("", markdown))
    parts[::2] = [LINK.sub(written, WORDS.sub(without_folders, part)) for part in parts[::2]]
    return "".join(parts)
