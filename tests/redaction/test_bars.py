"""The bars of redaction, measured on a corpus that is generated here: secrets go, harmless tokens stay."""

from __future__ import annotations

import json
from collections import Counter

from tests.redaction.corpus import KINDS, PER_KIND, TOKENS, harmless, planted

from gpuwhy.redaction import Redactor


def test_planted_secrets_of_every_kind_are_removed() -> None:
    """The bar: 99 % of at least 400 secrets of 40 kinds."""
    leaked: Counter[str] = Counter()
    seen = 0
    for each in planted():
        seen += 1
        if each.secret in json.dumps(Redactor().value(each.document), ensure_ascii=False):
            leaked[each.kind] += 1
    assert len(KINDS) >= 40
    assert seen == len(KINDS) * PER_KIND >= 400
    assert leaked.total() <= seen // 100, f"{leaked.total()} of {seen} secrets are still there: {leaked}"
    assert not [kind for kind, count in leaked.items() if count > PER_KIND // 4]


def test_harmless_tokens_stay() -> None:
    """The bar: at most 0.1 % of 50,000 are lost."""
    lost: Counter[str] = Counter()
    seen = 0
    for sheet in harmless():
        redacted = Redactor().value(sheet.lines)
        for (kind, token), line in zip(sheet.tokens, redacted, strict=True):
            seen += 1
            lost[kind] += token not in line
    assert seen == TOKENS
    assert lost.total() <= seen // 1000, f"{lost.total()} of {seen} harmless tokens are lost: {+lost}"
