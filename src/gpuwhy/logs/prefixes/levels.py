"""Level words at the start of a message.

INFO 08-03 17:45:41 [api_utils.py:273] ...     vLLM (the bracket was open on the left in old releases)
ERROR 11-29 10:00:00 ...                       and with a format of one's own, or pasted by who found the place too long
WARNING [qwen3_dflash2.py:74] ...
ERROR 125765 [ DP10 TP10 EP10 scheduler.py:2655]   File ...
ERROR:        fn_cache_manager = ...           uvicorn pads to ten columns; what follows is the message's own
ERROR:vllm.engine:...                          Python's basicConfig
ERRO[0000] ...                                 logrus
E0619 10:02:11.123456  4711 server.cc:42] ...  glog
E0000 00:00:1795946531.123456  4711 cuda_dnn.cc:8310] ...  absl before its start
"""

from __future__ import annotations

from gpuwhy.logs import stamps
from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.prefixes._types import Peeled
from gpuwhy.logs.prefixes.parentheses import rank_in
from gpuwhy.model.event import Process

NAMES = {
    "TRACE": "debug",
    "DEBUG": "debug",
    "DEBU": "debug",
    "INFO": "info",
    "NOTICE": "info",
    "SUCCESS": "info",
    "WARNING": "warning",
    "WARN": "warning",
    "ERROR": "error",
    "ERRO": "error",
    "SEVERE": "error",
    "CRITICAL": "critical",
    "FATAL": "critical",
    "FATA": "critical",
    "PANIC": "critical",
    "D": "debug",
    "I": "info",
    "W": "warning",
    "E": "error",
    "F": "critical",
    "C": "critical",
}
INITIALS = frozenset("TDINSWEFCP")
WORDS = "TRACE|DEBUG|INFO|NOTICE|SUCCESS|WARNING|WARN|ERROR|SEVERE|CRITICAL|FATAL|PANIC"

_WORD = Pattern(rf"(?:{WORDS}|DEBU|ERRO|FATA)(?![A-Za-z])")
_VLLM = Pattern(r" +(\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d{1,6})?(?: \[?[^\]\s]{1,160}:\d+\] ?| - |: ?| |$)")
_AFTER_WORD = Pattern(
    r" +\[ *([^\]]{0,120}?)(?::\d+)?\] ?"  # ERROR [multiproc_executor.py:783]
    r"| +\d{2,7} \[ *([^\]]{0,120}?)(?::\d+)?\] ?"  # ERROR 125765 [ DP10 TP10 EP10 scheduler.py:2655]
    r"| +\.\.\. ?(?:\[[^\]]{0,120}\] ?)?"  # ERROR ... [gpu_model_runner.py:5403], cut by who pasted it
    r"|\[\d+\] ?"  # ERRO[0000]
    r"| {1,8}[\w./-]{1,80}\.(?:py|cc|cpp|go|rs):\d{1,7}(?: --|:)? "  # INFO worker.py:2038 -- of Ray
    r"|:[A-Za-z_][\w.]*:(?!\d)"  # ERROR:vllm.engine:
    r"| *\| *[\w.<>]+:[\w.<>]+:\d+ - ?"  # loguru after its time
    r"| *[-|] "
)
_PADDED = Pattern(r": {0,8}")
_STAMP_NEXT = Pattern(rf" +(?={stamps.ISO})")
_GLOG = Pattern(
    r"([IWEFD])(?:20\d\d)?(\d{2})(\d{2}) (\d\d:\d\d:\d\d)(?:\.\d+)?(?: +\d+)? (?:[^\]\s]{1,200}:\d+)?\] ?"
    r"|([IWEFD])0000 00:00:(\d{9,11}\.\d{1,9}) +\d+ [^\]\s]{1,200}:\d+\] ?"  # absl before its time zone is known
)
_LONGEST_WORD = 8
_COLUMNS = 10


def peel(text: str, reference: float) -> Peeled | None:
    second = text[1:2]
    if not (second.isupper() or second.isdigit()):
        return None
    head = text[:300]
    word = _WORD.match(head)
    if word is None:
        return _peel_glog(text, head, reference)
    name = word.group()
    level = NAMES[name]
    end = word.end()
    found = _VLLM.match(head, end)
    if found is not None:
        return text[found.end() :], None, stamps.from_month_day(found.group(1), reference), level
    following = head[end : end + 1]
    if following == ":" and (len(name) + 1 >= len(head) or head[end + 1 : end + 2] in ("", " ")):
        padded = _PADDED.match(head, end)
        spaces = padded.end() - end - 1 if padded else 0
        taken = min(spaces, max(1, _COLUMNS - len(name) - 1))
        return text[end + 1 + taken :], None, None, level
    found = _STAMP_NEXT.match(head, end)
    if found is not None:
        return text[found.end() :], None, None, level
    found = _AFTER_WORD.match(head, end)
    if found is not None:
        return text[found.end() :], _process(found.group(1) or found.group(2) or ""), None, level
    if following == " " and head[end + 1 : end + 2] not in ("=", "<", ">"):
        return text[end + 1 :], None, None, level
    return None


def _process(inside: str) -> Process | None:
    """``DP10 TP10 EP10 scheduler.py``: SGLang puts its ranks before the file."""
    ranks = [word for word in inside.split() if word[:2] in ("DP", "TP", "EP", "PP") and word[2:].isdigit()]
    if not ranks:
        return None
    return Process(name=" ".join(ranks), rank=rank_in(" ".join(ranks)))


def _peel_glog(text: str, head: str, reference: float) -> Peeled | None:
    found = _GLOG.match(head)
    if found is None:
        return None
    letter, month, day, clock, early, seconds = found.groups()
    if early:
        return text[found.end() :], None, float(seconds), NAMES[early]
    time = stamps.from_month_day(f"{month}-{day} {clock}", reference)
    return text[found.end() :], None, time, NAMES[letter]
