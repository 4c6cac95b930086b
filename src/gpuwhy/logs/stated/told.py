"""The GPU in running text, as reporters mention it.

Host GPU is a Tesla T4 (7.5).          It crashes while running on 2x RTX 5090.          vLLM does not start on my A6000.

What is compared with is not the GPU of the report: ``works on my 4090``, ``same on H100``, ``requires an A100``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.stated._types import Statement, Strength

LITERALS = (
    "RTX", "GTX", "Tesla", "A100", "A10", "A30", "A40", "A800", "A4000", "A5000", "A6000", "H100", "H200", "H800", "H20", "B200", "B300", "GB200", "GB300", "GB10",
    "GH200", "L40", "L20", " L4", " T4", "V100", "P100", "P40", "K80", "5090", "5080", "5070", "5060", "4090", "4080", "4070", "4060", "3090", "3080", "3070", "3060", "2080",
)  # fmt: skip
_NAME = (
    r"(?:(?:RTX|GTX)[ -]?(?:PRO[ -]?)?A?\d{3,4}(?: ?(?:Ti|SUPER|Ada|D)\b)?(?: (?:Ti|Blackwell)\b)?|A(?:10G?|30|40|100|800|4000|4500|5000|6000)|H(?:20|100|200|800)|B(?:200|300)|GB(?:10|200|300)"
    r"|GH200|L(?:4|20|40S?)|T4|V100S?|P(?:4|40|100)|K80|[2345]0[5-9]0(?: ?(?:Ti|SUPER)\b)?)(?=s?(?![\w/]|\.\w))(?!,\d| (?:tokens?|requests?|steps?|samples?|[KMG]i?B|ms)\b)"
)
_ANY = Pattern(
    rf"(?:(?<=[^\w.:/=-])|^)(?P<name>{_NAME})",
    re.IGNORECASE,
)
_MAKER = r"(?:(?:NVIDIA|GeForce|Tesla|Quadro|Jetson|Nvidia's) ){0,3}"
_COUNT = r"(?:(?:an?|the|my|our|one|two|three|four|eight|single|dual|\d{1,3}) ?[x×*]? ?){0,2}"
_DOES = (
    r"(?:running|runs?|ran|serv(?:e|ed|ing)|deploy(?:ed|ing)?|launch(?:ed|ing)?|start(?:s|ed|ing)?|load(?:s|ed|ing)?|test(?:ed|ing)?|tr(?:y|ied|ying)|fail(?:s|ed|ing)?"
    r"|crash(?:es|ed|ing)?|hangs?|hung|stuck|errors?|OOMs?|happens|broken|reproduc(?:es|ed|ible)|freezes|dies|using)"
)
_OWN = Pattern(
    rf"(?:\bGPUs? (?:(?:here|used|in use|of (?:the|this|my) \w{{3,12}}) )?(?:is|are|was) |\b(?:host|machine|server|node|box|system|workstation|instance|VM|pod|setup|hardware) (?:has|have|is|with|uses|runs on) "
    rf"|\b(?:my|our) (?:(?:own|new|old|local|home) )?|\b{_DOES}\b[^;\n]{{0,60}}? (?:on|with) |\busing |\b(?:I|we) (?:have|use|got|own|run|am using|are using) ){_COUNT}{_MAKER}(?P<name>{_NAME})",
    re.IGNORECASE,
)
_NEGATED = Pattern(
    r"\b(?:(?:does|do|did|is|was) ?n[o'’]?t|cannot|can't|can not|not|never|won't|stopped|no longer|stops) (?:even )?(?:work(?:s|ed|ing)?|start|run)\b",
    re.IGNORECASE,
)
_COMPARED = Pattern(
    r"\b(?:works?|worked|working|fine|ok|okay|same|also|whereas|unlike|compared?|comparison|vs|versus|instead|others?|another|previous(?:ly)?|earlier|used to|only|support(?:s|ed|ing)?|requires?|need(?:s|ed)?"
    r"|recommend(?:s|ed)?|e\.g|like|such as|or|should|would|may|might|plan(?:s|ned|ning)?|will|if|faster|slower|than|both|any|every|can|successful(?:ly)?|passes|benchmark(?:s|ed)?|results?|optimi[sz]ed|tuned|default|config\w{0,12})\b"
    r"|\bnot (?:on|with|for)\b|\?\s*$",
    re.IGNORECASE,
)
_SENTENCE_END = Pattern(r"(?<=[.!?;。！？；])\s+(?=\S)|(?<=\)), ")
LONGEST = 600


def read(text: str) -> Iterator[Statement]:
    """The one model that a sentence about the reporter's own machine names; nothing where several are named."""
    if len(text) > LONGEST or " " not in text.strip():
        return
    for sentence in _SENTENCE_END.split(text):
        names = {_plain(found["name"]) for found in _ANY.finditer(sentence)}
        if len(names) != 1 or _COMPARED.search(_NEGATED.sub(" fails ", sentence)):
            continue
        if _OWN.search(sentence):
            yield Statement("gpu@", names.pop(), Strength.TOLD)


def _plain(name: str) -> str:
    """``RTX5090``, ``rtx-5090`` and ``5090`` as ``RTX 5090``."""
    words = re.sub(r"(?i)\b(RTX|GTX)[ -]?(?=\w)", lambda found: found.group(1).upper() + " ", name).split()
    joined = " ".join(words)
    if joined[:1].isdigit():
        return f"RTX {joined}"
    return joined if joined.startswith(("RTX", "GTX")) else joined.upper()
