"""A hook of mkdocs: pages that stand outside docs/, links that leave it, and the catalogue in the navigation.

Every link is written as it works in the repository. Those to pages that lie elsewhere (CONTRIBUTING.md, scripts/README.md ...)
lead to the page's place on the site; those to what is no page, such as a folder of the source, become plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    "CONTRIBUTING.md": "writing-a-cause.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting-a-vulnerability.md",
    "scripts/README.md": "scripts.md",
    "tests/cases/FORMAT.md": "cases.md",
    "tests/data/fit/README.md": "fit-measurements.md",
    "benchmarks/README.md": "benchmarks.md",
    "tests/lab/README.md": "lab.md",
}
"""Path in the repository, and the page of the site that it becomes."""
_LINK = re.compile(r"(?P<text>!?\[[^\]\n]{1,300}\])\((?P<target>[^)#\s]{1,300})(?P<anchor>#[^)\s]{0,200})?\)")
CATALOGUE = "causes/README.md"
_FAMILY_OR_CAUSE = re.compile(r"^## (?P<family>.+)$|^\| \[[\w-]+\]\((?P<page>[\w-]+\.md)\)", re.MULTILINE)
_FENCED = re.compile(r"(^```+.*?^```+[ ]*$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the causes under the catalogue, by family, as its own page does."""
    families: list[dict[str, list[str]]] = []
    for match in _FAMILY_OR_CAUSE.finditer((ROOT / "docs" / CATALOGUE).read_text(encoding="utf-8")):
        if match["family"]:
            families.append({match["family"]: []})
        else:
            next(iter(families[-1].values())).append(f"causes/{match['page']}")
    for section in config.nav or []:
        for pages in section.values() if isinstance(section, dict) else ():
            if CATALOGUE in pages:
                pages.extend(families)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that stand outside docs/."""
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links of the repository made those of the site."""
    stands = {site: path for path, site in OUTSIDE.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _linked(part, stands, page.file.src_uri) for part in parts)


def _linked(text: str, stands: str, page: str) -> str:
    return _LINK.sub(lambda link: _of_site(link, stands, page), text)


def _of_site(link: re.Match[str], stands: str, page: str) -> str:
    """``link`` of the file at ``stands`` as it is on the site's ``page``."""
    if ":" in link["target"]:
        return link[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(stands), link["target"]))
    if target.startswith("docs/"):
        target = target.removeprefix("docs/")
    elif target in OUTSIDE:
        target = OUTSIDE[target]
    else:
        return link["text"].removeprefix("[").removesuffix("]")
    if target.endswith("/") or "." not in posixpath.basename(target):
        target = posixpath.join(target, "README.md")
    return f"{link['text']}({posixpath.relpath(target, posixpath.dirname(page) or '.')}{link['anchor'] or ''})"
