"""The site of docs/: built in strict mode without a network, complete, and asking nobody for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from scripts.site.pages_of_repository import OUTSIDE, ROOT

from gpuwhy.cli.group import COMMANDS

FETCHED = {"src", "srcset", "poster", "data"}
IN_STYLE = re.compile(r"url\(\s*['\"]?(?!data:)(?:https?:)?//|@import")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # a root without the right to make a network namespace, as in many containers, builds with the one that is there
    offline = ["unshare", "--net"]
    can_be_offline = (
        os.geteuid() == 0 and subprocess.run([*offline, "true"], capture_output=True, check=False).returncode == 0
    )
    alone = offline if can_be_offline else []
    done = subprocess.run(
        [*alone, sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


class Requests(HTMLParser):
    """What a browser fetches by itself for a page, and the text of its paragraphs."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.paragraphs: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.fetched.extend(value for name, value in given.items() if name in FETCHED)
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(given.get("href", ""))
        if tag == "p":
            self._open = True
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "p"

    def handle_data(self, data: str) -> None:
        if self._open:
            self.paragraphs[-1] += data


def read(page: Path) -> Requests:
    parsed = Requests()
    parsed.feed(page.read_text(encoding="utf-8"))
    return parsed


def test_every_document_is_in_the_navigation() -> None:
    told = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w/-]+\.md", str(yaml.safe_load(told)["nav"])))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - named == set()
    assert set(OUTSIDE.values()) - named == set()


def test_every_page_of_the_catalogue_is_reached_from_the_first(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "causes").glob("*.md"):
        name = "index.html" if page.name == "README.md" else f"{page.stem}.html"
        assert f'href="causes/{name}"' in first, page.name


def test_no_page_asks_a_network_for_anything(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 90
    outside = {
        f"{page.relative_to(site)}: {target}"
        for page in pages
        for target in read(page).fetched
        if re.match(r"(?:[a-z]+:)?//", target)
    }
    assert not outside
    for style in site.rglob("*.css"):
        assert not IN_STYLE.search(style.read_text(encoding="utf-8")), style.name


def test_lists_are_lists(site: Path) -> None:
    """A list without an empty line before it is one on GitHub, and running text here."""
    for page in site.rglob("*.html"):
        for paragraph in read(page).paragraphs:
            assert not re.search(r"\n(?:[-*]|\d\.) ", paragraph), f"{page.relative_to(site)}: {paragraph[:200]}"


def test_the_form_for_a_wrong_diagnosis_names_what_exists() -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "wrong-diagnosis.yml").read_text(encoding="utf-8"))
    identities = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert identities == ["answer", "right", "log", "version"]
    for name in re.findall(r"`gpuwhy (\w+)", str(form)):
        assert name in COMMANDS, name


def test_links_out_of_the_documents_lead_to_their_page(site: Path) -> None:
    assert 'href="writing-a-cause.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert 'href="certainty.html"' in (site / "writing-a-cause.html").read_text(encoding="utf-8")
    assert 'href="scripts.html"' in (site / "knowledge.html").read_text(encoding="utf-8")
