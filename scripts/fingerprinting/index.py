"""The package index as pip is configured: which wheels a project has, and ranges of their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

# No public interface of pip hands out its session; these names have been stable since pip 20.3.
from pip._internal.commands import create_command

from scripts.fingerprinting.coverage import Release

_JSON = "application/vnd.pypi.simple.v1+json"


class IndexAnswerError(Exception):
    """The index answered something that cannot be used."""


class Index:
    """Wheels of the first configured index that knows a project."""

    def __init__(self, session: Any, search_scope: Any) -> None:
        self._session = session
        self._scope = search_scope

    def releases(self, name: str) -> list[Release]:
        """Releases with a wheel, oldest version first, each with the wheel that is smallest and not yanked.

        The Python files of the wheels of one release are the same but for a few generated ones.
        """
        page = self._page(name)
        found: dict[Version, Release] = {}
        for file in page["files"]:
            try:
                version = parse_wheel_filename(file["filename"])[1]
            except InvalidWheelFilename:
                continue
            if file.get("yanked") or "win" in file["filename"].rpartition("-")[2]:
                continue
            release = Release(str(version), file["upload-time"][:10], file["url"], int(file["size"]))
            if version not in found or release.size < found[version].size:
                found[version] = release
        return [found[version] for version in sorted(found)]

    def _page(self, name: str) -> dict[str, Any]:
        for location in self._scope.get_index_urls_locations(name):
            if urlsplit(location).scheme not in ("http", "https"):
                continue
            reply = self._session.get(location, headers={"Accept": _JSON})
            if reply.status_code == 200 and _JSON in reply.headers.get("content-type", ""):
                page: dict[str, Any] = reply.json()
                for file in page["files"]:
                    file["url"] = urljoin(location, file["url"])
                return page
        raise IndexAnswerError(f"no configured index lists {name} in the JSON form of the simple API")

    def read(self, url: str, first: int, last: int) -> bytes:
        """Bytes `first` to `last` (inclusive) of a file."""
        span = f"bytes={first}-{last}"
        reply = self._session.get(url, headers={"Range": span, "Accept-Encoding": "identity"})
        if reply.status_code != 206:
            raise IndexAnswerError(f"a range request was answered with status {reply.status_code}")
        content: bytes = reply.content
        return content


@contextmanager
def opened_index() -> Iterator[Index]:
    """The index with pip's session: its authentication, proxy, certificates and retries."""
    command: Any = create_command("download")
    options, _ = command.parse_args(["placeholder"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        yield Index(session, finder.search_scope)
