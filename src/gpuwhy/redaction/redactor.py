"""Replaces secrets by tokens. The same secret gets the same token in every text that one redactor sees."""

import re
import threading
from typing import Any, Dict, List, Match, Optional, Pattern, Set

from gpuwhy.redaction import contexts, patterns
from gpuwhy.redaction.randomness import is_encoded_pair, looks_random
from gpuwhy.redaction.source_code import is_installed_source, redacted_source

SHORTEST_LEARNED = 8
"""A secret of fewer characters is replaced where its name gives it away, but not searched for elsewhere: it could be a word."""

MOST_LEARNED = 200

_NAMED, _MAYBE_NAMED = "name", "name in doubt"

_KNOWN = tuple(patterns.FORMS.items()) + tuple(contexts.CONTEXTS.items())

_HINTS = tuple(
    (hint, kind)
    for hints_of in (
        patterns.FORM_HINTS,
        contexts.CONTEXT_HINTS,
        {_NAMED: patterns.NAME_HINTS, _MAYBE_NAMED: contexts.MAYBE_HINTS},
    )
    for kind, hints in hints_of.items()
    for hint in hints
)
"""What a text must hold, and what is then looked for. One flat loop: this runs for every line of a journal."""


class Redactor:
    """Takes secrets out of the texts of one snapshot.

    A secret is known by its form (``hf_...``), by the name it stands under (``API_KEY=...``), or because an earlier
    text gave it away: from then on it is replaced wherever it stands. Redacting twice changes nothing. ``counts``
    tells how many replacements were made, by kind; it never holds a secret.
    """

    def __init__(self) -> None:
        self.counts: Dict[str, int] = {}
        self._tokens: Dict[str, str] = {}
        self._learned: List[str] = []
        self._literal: Optional[Pattern[str]] = None
        self._highest = 0
        self._lock = threading.RLock()

    def text(self, text: str) -> str:
        """``text`` without its secrets."""
        with self._lock:
            return self._text(text)

    def value(self, value: Any) -> Any:
        """A JSON-like value without its secrets: a string under a telling key (``HF_TOKEN``) is one as a whole."""
        with self._lock:
            self._note_tokens(value)
            self._learn_named(value)
            return self._value(value, _Block())

    def learn(self, secret: str) -> None:
        """From now on ``secret`` is replaced wherever it stands, if it is long enough to be told from a word."""
        with self._lock:
            if not patterns.TOKEN.search(secret) and not patterns.HARMLESS_VALUE.match(secret):
                self._token(secret)

    def learn_from(self, value: Any) -> None:
        """Learns every secret that stands under a telling key or option in ``value``, and changes nothing."""
        with self._lock:
            self._learn_named(value)

    def _text(self, text: str) -> str:
        text = self._without_learned(text)
        lowered = text.lower()
        hinted = {kind for hint, kind in _HINTS if hint in lowered}
        if not hinted:
            return text
        self._note_tokens(text)
        learned = len(self._learned)
        for kind, pattern in _KNOWN:
            if kind in hinted:
                text = pattern.sub(lambda found, kind=kind: self._replace_group(kind, found), text)  # type: ignore[misc]
        if _NAMED in hinted:
            if "kind" in lowered:
                text = self._without_kubernetes_secrets(text)
            if "value" in lowered:
                text = contexts.VALUE_OF_NAMED.sub(self._replace_value_of_named, text)
            text = patterns.OPTION.sub(lambda found: self._replace_named("command-line option", found), text)
            text = patterns.ASSIGNMENT.sub(self._replace_assigned, text)
            text = contexts.IN_WORDS.sub(self._replace_in_words, text)
        if _MAYBE_NAMED in hinted:
            text = contexts.MAYBE_NAMED.sub(self._replace_maybe_named, text)
        # A text may give a secret away in one place and repeat it in another.
        return self._without_learned(text) if len(self._learned) > learned else text

    def _without_learned(self, text: str) -> str:
        if self._literal is None:
            return text
        return self._literal.sub(lambda found: self._replace("seen before", found.group()), text)

    def _value(self, value: Any, block: "_Block") -> Any:
        if isinstance(value, str):
            if block.covers(value):
                return self._replace("private key", value)
            return self._text(value)
        if isinstance(value, dict):
            return self._mapping(value, block)
        if isinstance(value, (list, tuple)):
            return self._list(list(value), block)
        return value

    def _key(self, key: Any) -> Any:
        return self._text(key) if isinstance(key, str) else key

    def _mapping(self, value: Dict[Any, Any], block: "_Block") -> Dict[Any, Any]:
        """An object; ``{"name": "HF_TOKEN", "value": ...}`` is one whose name says what its value is."""
        if is_installed_source(value):
            return self._source(value, block)
        redacted = {self._key(key): self._under_key(key, item, block) for key, item in value.items()}
        name, named = value.get("name"), value.get("value")
        if isinstance(name, str) and isinstance(named, str) and _is_secret(name, named):
            redacted["value"] = self._replace("by name", named)
        if value.get("kind") == "Secret":
            for part in ("data", "stringData"):
                if isinstance(value.get(part), dict):
                    redacted[part] = {key: self._whole("Kubernetes secret", item) for key, item in value[part].items()}
        return redacted

    def _source(self, value: Dict[Any, Any], block: "_Block") -> Dict[Any, Any]:
        """A file of an installed package: its names are those of the program, and hide nothing."""
        lines = redacted_source(list(value["lines"]), self._replace, self._literal)
        return {
            key: lines if key == "lines" else self._under_key(self._key(key), item, block)
            for key, item in value.items()
        }

    def _whole(self, kind: str, item: Any) -> Any:
        return self._replace(kind, item) if isinstance(item, str) and is_secret_value(item) else item

    def _under_key(self, key: Any, item: Any, block: "_Block") -> Any:
        if isinstance(key, str) and isinstance(item, str) and _is_secret(key, item):
            return self._replace("by name", item)
        if isinstance(key, str) and isinstance(item, (list, tuple)) and is_secret_name(key):
            return [self._under_key(key, each, block) for each in item]
        return self._value(item, block)

    def _list(self, items: List[Any], block: "_Block") -> List[Any]:
        """Command lines come as lists: the value follows its option."""
        redacted: List[Any] = []
        previous: Any = None
        for item in items:
            follows = isinstance(item, str) and isinstance(previous, str) and previous.startswith("-")
            if follows and is_secret_name(previous) and is_secret_value(item):
                redacted.append(self._replace("command-line option", item))
            elif follows and _is_password_option(previous, items) and is_secret_value(item):
                user, colon, password = item.rpartition(":") if previous != "-p" else ("", "", item)
                is_pair = bool(colon and password) or previous == "-p"
                redacted.append(user + colon + self._replace("command-line option", password) if is_pair else item)
            else:
                redacted.append(self._value(item, block))
            previous = item
        return redacted

    def _without_kubernetes_secrets(self, text: str) -> str:
        if not contexts.KUBERNETES_SECRET.search(text):
            return text
        documents = text.split("\n---")
        for number, document in enumerate(documents):
            if contexts.KUBERNETES_SECRET.search(document):
                documents[number] = contexts.KUBERNETES_DATA.sub(self._replace_kubernetes_data, document)
        return "\n---".join(documents)

    def _replace_kubernetes_data(self, found: Match[str]) -> str:
        def replaced(pair: Match[str]) -> str:
            return pair.group("before") + str(self._whole("Kubernetes secret", pair.group("secret")))

        start = found.start("data") - found.start()
        return found.group()[:start] + contexts.KUBERNETES_VALUE.sub(replaced, found.group("data"))

    def _replace_value_of_named(self, found: Match[str]) -> str:
        return (
            self._replace_group("by name", found)
            if _is_secret(found.group("name"), found.group("secret"))
            else found.group()
        )

    def _replace_maybe_named(self, found: Match[str]) -> str:
        name, value = _name_before(found.string, found.end("name")), found.group("secret")
        # A name that leaves no doubt was judged before, and may have been found to be program text.
        is_open = not is_secret_name(name) and not _is_code(name, value)
        return self._replace_group("by name", found) if is_open and _is_secret(name, value) else found.group()

    def _replace_in_words(self, found: Match[str]) -> str:
        secret = found.group("secret")
        # "cache key: ..." names no secret; a name that is written with its own separator was looked at before.
        before = found.string[max(0, found.start() - 12) : found.start()].lower()
        is_other = before.rstrip(" _-.").endswith(("cache", "sort", "index", "store", "special", "public", "partition"))
        return self._replace_group("in words", found) if looks_random(secret) and not is_other else found.group()

    def _replace_group(self, kind: str, found: Match[str]) -> str:
        group = "secret2" if found.group("secret") is None else "secret"
        secret = found.group(group)
        if not secret.strip() or not is_secret_value(secret):
            return found.group()
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        whole = found.group()
        return whole[:start] + self._replace(kind, secret) + whole[end:]

    def _replace_assigned(self, found: Match[str]) -> str:
        # A number after "token" is what engines count: told first, because reading the name costs more.
        if not is_secret_value(found.group("bare") or found.group("quoted")):
            return found.group()
        return self._replace_named("by name", found, _whole_name(found))

    def _replace_named(self, kind: str, found: Match[str], whole_name: Optional[str] = None) -> str:
        name = found.group("name") if whole_name is None else whole_name
        quoted = found.group("quoted")
        secret = found.group("bare") if quoted is None else quoted
        if not is_secret_name(name) or not is_secret_value(secret) or (quoted is None and _is_code(name, secret)):
            return found.group()
        quote = found.group("quote") or ""
        return found.group("name") + found.group("between") + quote + self._replace(kind, secret) + quote

    def _replace(self, kind: str, secret: str) -> str:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self._token(secret)

    def _token(self, secret: str) -> str:
        known = self._tokens.get(secret)
        if known is not None:
            return known
        self._highest += 1
        token = "<redacted:%d>" % self._highest
        self._tokens[secret] = token
        if len(secret) >= SHORTEST_LEARNED and len(self._learned) < MOST_LEARNED:
            self._learned.append(secret)
            longest_first = sorted(self._learned, key=len, reverse=True)
            self._literal = re.compile("|".join(re.escape(each) for each in longest_first))
        return token

    def _note_tokens(self, value: Any) -> None:
        """New numbers start above those of an earlier redaction, so that equal tokens go on meaning equal secrets."""
        for text in _texts(value):
            if "<redacted:" in text:
                for found in patterns.TOKEN.finditer(text):
                    self._highest = max(self._highest, min(int(found.group(1)[:9]), 10**9))

    def _learn_named(self, value: Any) -> None:
        """Secrets that stand under a telling key anywhere in the document are known before its first text is read."""
        for secret in _named_secrets(value):
            self.learn(secret)


def is_secret_name(name: str) -> bool:
    """Whether what stands under ``name`` (a variable, key or option) must not be shown."""
    bare = name.lstrip("-")
    return bool(patterns.SENSITIVE_NAME.match(bare)) and not patterns.NOT_SECRET_NAME.search(bare)


def is_secret_value(value: str) -> bool:
    """Whether ``value`` can hold a secret at all: not when it is empty, a number, a type, or already a token."""
    stripped = value.strip()
    return not patterns.HARMLESS_VALUE.match(stripped) and not patterns.TOKEN.search(stripped)


def _is_secret(name: str, value: str) -> bool:
    """Whether ``value`` under ``name`` must go: the name says so, or it may mean a secret and the value looks like one."""
    bare = name.lstrip("-")
    if is_secret_name(name):
        return is_secret_value(value)
    if not contexts.MAYBE_NAME.match(bare) or patterns.NOT_SECRET_NAME.search(bare):
        return False
    return looks_random(value) or is_encoded_pair(value)


def _is_password_option(option: str, command: List[Any]) -> bool:
    words = contexts.PASSWORD_OPTIONS.get(option, ())
    return any(isinstance(item, str) and item.rsplit("/", 1)[-1] in words for item in command)


def _name_before(text: str, end: int) -> str:
    """The name that ends at ``end``, with all that is joined to it."""
    before = text[max(0, end - patterns.LONGEST_NAME) : end]
    return before[len(before.rstrip(patterns.NAME_CHARACTERS)) :]


def _whole_name(found: Match[str]) -> str:
    """The name that ends with the word that was found, read backwards as far as it goes; ``""`` when none ends there."""
    end = found.end("name")
    before = found.string[max(0, end - patterns.LONGEST_NAME) : end]
    name = patterns.NAME_BEFORE.search(before[len(before.rstrip(patterns.NAME_CHARACTERS)) :])
    return "" if name is None else name.group()


def _is_code(name: str, value: str) -> bool:
    """``token=token``, ``api_key=self.api_key``: a source line in a traceback gives nothing away."""
    words: Set[str] = set(re.findall(r"[a-z]+", name.lower()))
    return bool(patterns.CODE_VALUE.match(value)) or (
        bool(re.match(r"^[a-z_.]+$", value)) and bool(words & set(re.findall(r"[a-z]+", value)))
    )


def _texts(value: Any) -> List[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _texts(item)]
    return []


def _named_secrets(value: Any) -> List[str]:
    found: List[str] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str) and isinstance(item, str) and _is_secret(key, item):
                found.append(item)
            else:
                found.extend(_named_secrets(item))
    elif isinstance(value, (list, tuple)):
        for item in value:
            found.extend(_named_secrets(item))
    return found


class _Block:
    """A private key that a log spreads over several entries: those between its first and its last line."""

    LONGEST = 200

    def __init__(self) -> None:
        self._left = 0

    def covers(self, text: str) -> bool:
        if self._left:
            self._left = 0 if "-----END " in text else self._left - 1
            return "-----" not in text
        if "-----BEGIN " in text and "PRIVATE KEY" in text and "-----END " not in text:
            self._left = self.LONGEST
        return False
