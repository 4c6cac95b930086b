"""Answers that are one sign or word again and again, as reporters describe and quote them.

NaN or damaged logits have the same best token at every step, so which sign it is (``!``, ``G``, ``<unk>``, ``[PAD]``)
tells only which one the tokenizer has there.
"""

from __future__ import annotations

from gpuwhy.causes._signs import told

_ANSWER = r"\b(?:outputs?|outputting|answers?|respon[sd]\w{0,5}|repl(?:y|ies)|generat\w{1,4}|completions?|content|text|returns?|returned|prints?|produces?|gives|gets?)\b"
_SAID_SO = r"\b(?:just|only|always|nothing but|all|full of|consists? of|is|are|was|of|with)\s{0,3}(?:like |a lot of |many |a bunch of )?[\"'`“‘(\[]{0,3}"
_RULER = r"\s\w=\-*._~#+|<>\\,;:\"'`\ufffd"
"""What lines of a log are drawn with, or what separates words: runs of it are no answer."""
_TAG = r"(?:<unk>|<pad>|<s>|</s>|\[PAD\]|\[UNK\]|<\|endoftext\|>|<\|pad\|>|\\n|\\u0000|<0x\w\w>)"


def _run(name: str, least: int) -> str:
    """A sign of an answer at least ``least`` times in a row, or one of a tokenizer's own words twice."""
    return (
        rf"(?:(?P<{name}>[A-WYZ])(?P={name}){{{least - 1},}}(?![\w-])|(?P<{name}0>\d)(?P={name}0){{7,}}(?![\w.-])"
        rf"|(?P<{name}1>[^{_RULER}])(?P={name}1){{{least - 1},}}|{_TAG}(?:\s{{0,2}}{_TAG}){{1,}}|<unk>|\[UNK\])"
    )


_QUOTED = r"(?P<q>[A-WYZ!?@&%$/])(?P=q){7,}"
_WORDS = r"\b(?P<word>[A-Za-z]\w{0,15})(?:[ ,]{1,2}(?P=word)){3,}\b"
_UNIT = r"(?:character|char|letter|token|word|sign|symbol|sentence|phrase|paragraph|syllable)s?"
_AGAIN = r"(?:over and over|again and again|repeatedly|endlessly|forever|infinitely|indefinitely|non-?stop|until (?:the )?max)"
REPETITION = told(
    "one-sign-again",
    (
        "output", "answer", "respon", "replies", "reply", "generat", "completion", "\"text\"", "content", "returns ", "prints ", "produces ",
        "gives ", "only get", "just get", "repetition", "repeat", "same token", "same word", "same character", "over and over", "重复", "感叹号",
    ),
    rf"(?:{_ANSWER}[^\n]{{0,60}}?{_SAID_SO}|\b(?:only|just|always) (?:get|got|see|saw)[\s\"'`“:]{{1,4}}){_run('few', 4)}|{_ANSWER}[^\n]{{0,40}}?[ \"'`“:]{_run('many', 6)}"
    rf"|\b(?:content|text|response|output|answer)\b[\"']?\s?[:=]\s?[\"']?{_QUOTED}|{_ANSWER}[^\n]{{0,60}}?{_WORDS}"
    rf"|\b(?:the )?(?:same|single|one) {_UNIT} (?:is |are )?(?:repeated |repeating )?{_AGAIN}|repeat\w{{0,5}} (?:the |a |one )?(?:same |single |one ){{0,2}}{_UNIT}\b"
    rf"|\bsingle repeat(?:ed|ing) {_UNIT}|\b(?:repetition|repetitive|repeating) loops?\b|\b(?:endless|infinite)(?:ly)? (?:newlines|repeat\w{{0,5}} {_UNIT}|repetition)"
    r"|输出[^\n]{0,12}(?:感叹号|乱码|重复)|(?:一直|不停|不断|无限)(?:地)?重复",
)  # fmt: skip
