"""Failures without any error: a hang, a stall, wrong answers.

INFO 08-03 17:45:41 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.
[2025-08-12 10:00:00 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
Thread 4711 (active): "MainThread"                       py-spy dump: nobody takes one of a server that answers
Timeout (0:10:00)!                                       faulthandler.dump_traceback_later
# two-rank all_reduce: no output after NCCL init         what a reporter says
output: "!!!!!!!!!!!!!!!!!!!!!!!!"                       token 0, again and again

``tool`` is ``hang`` or ``output``. They are the failure only when nothing else is.
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern
from gpuwhy.logs.recognisers._types import Recognised

LITERALS = (
    "No available shared memory broadcast block", "atchdog timeout", "atchdog timed out", "heartbeat timeout", ' (idle): "', ' (active): "', ' (active+gil): "', ' (idle+gil): "',
    "Timeout (", "no output after", "no further output", "no more output", "nothing happens", "never returns", "never finishes", "never completes", "does not respond",
    "not responding", "stops responding", "stopped responding", "hang", "Hang", "stuck", "frozen", "freezes", "deadlock", "ibberish", "arbage", "arbled", "onsense", "rong output",
    "rong answer", "rong result", "ncorrect output", "ncorrect result", "orrupted output", "orrupt output", "!!!!!!!!", "________", "????????", "accuracy",
    "repeats itself", "epetitive output", "outputs are different", "outputs differ", "100% without a process",
    "never starts", "never answers", "never loads", "never gets", "never proceeds", "never continues", "never responds", "just sit", "only sit", "simply sit", "sits there", "just waits", "only waits", "simply waits",
    "not proceed", "n't proceed", "not continue", "n't continue", "not go on", "n't go on", "any further", "get past", "get beyond", "move on",
)  # fmt: skip
_BROADCAST = Pattern(r"No available shared memory broadcast block found")
_HANG_TOLD = Pattern(
    r"(?i)\bwatchdog tim(?:eout|ed out)\b|heartbeat timeout|^Thread (?:0x)?[0-9a-f]{1,16} \((?:idle|active)(?:\+gil)?\): \"|^Timeout \(\d{1,4}:\d\d:\d\d(?:\.\d{1,9})?\)!"
)
_HANG_SAID = Pattern(
    r"(?i)\bno (?:further |more )?output (?:after|any ?more)|\bno (?:further|more) output\b|\bnothing happens\b|\bnever (?:returns|finishes|completes|starts|answers)\b"
    r"|\b(?:does(?:n't| not)|not|stop(?:s|ped)) respond(?:ing)?\b|\b(?:it|and|then|server|process|engine|worker|inference|requests?|startup|loading|gpus?|simply|just|always|will|forever) "
    r"(?:\w{1,20} ){0,2}(?:hangs?|hung|freezes|is stuck|gets? stuck|are stuck|deadlocks?)\b|\b(?:hangs?|hung|stuck|frozen) (?:at|after|in|on|during|when|while|for|forever|indefinitely|here)\b"
    r"|100 ?% without a process|\b(?:just|only|simply) (?:sits?|waits)\b|\bsits there\b|\bnever (?:loads|gets (?:past|beyond|further)|proceeds|continues|responds)\b"
    r"|\b(?:does|do|did|will|would)(?:n['’]t| not) (?:proceed|continue|go on|go any further|get (?:past|beyond|any further)|move on)\b"
)
_OUTPUT_SAID = Pattern(
    r"(?i)\b(?:gibberish|garbage|garbled|nonsense)\b|\b(?:wrong|incorrect|corrupt(?:ed)?|repetitive) (?:output|answer|result|token|generation)s?\b"
    r"|\boutputs? (?:are|is) (?:different|wrong|garbage|corrupt|empty)|\boutputs differ\b|\baccuracy (?:drops?|dropped|is 0|of 0|collapses)\b|repeats itself (?:forever|endlessly)"
)
_OUTPUT_SHOWN = Pattern(r"[\"'`“:>] ?[^\"'`|]{0,60}(?P<same>[!_?])(?P=same){7,}")
_GARBAGE_ELSEWHERE = Pattern(r"(?i)garbage[- ]collect|\bgc\b")
_NOT_SAID = Pattern(
    r"(?i)timeout=|--\w|\bif\b.{0,60}\b(?:hang|stuck|hung)|to (?:avoid|prevent) |NCCL INFO|\bhang up\b|^\[\d\d:\d\d[:.\d]{0,12} --> "
)
"""The last is a transcript: what somebody said into a microphone."""
LONGEST = 1000


def recognise(text: str, level: str = "") -> Recognised | None:
    shown = text[:LONGEST]
    if _BROADCAST.search(shown):
        return Recognised("warning", "hang", _level(level), is_echo=True)
    if _HANG_TOLD.search(shown):
        return Recognised("warning", "hang", _level(level), takes_more=True)
    if level:  # what a program logs in passing is no statement of a reporter
        return None
    if _HANG_SAID.search(shown) and not _NOT_SAID.search(shown):
        return Recognised("warning", "hang")
    if _OUTPUT_SAID.search(shown) and not _GARBAGE_ELSEWHERE.search(shown):
        return Recognised("warning", "output")
    if _OUTPUT_SHOWN.search(shown):
        return Recognised("warning", "output")
    return None


def _level(level: str) -> dict[str, str]:
    return {"level": level} if level else {}
