"""Rows of inventories: what programs list of a machine, whether or not anything is wrong with it.

[conda] Could not collect                                                        torch's and vLLM's collect_env
        DRAM Uncorrectable                         : 0                           nvidia-smi -q
max locked memory           (kbytes, -l) unlimited                               ulimit -a
ii  liberror-perl  0.17029-2  all  Perl module for error handling                dpkg -l
3f1b7c0a1b2c   error-page:v1   "serve"   2 hours ago   Up 3 minutes              docker ps

Words such as *error*, *killed* or *could not* are names in them, or answers to a question that no failure asked. Such a
row states facts; it is never what happened. A count above 0 in a row of nvidia-smi is none of these, nor is a container
that has ended.
"""

from __future__ import annotations

from gpuwhy.logs.patterns import Pattern

LONGEST = 600
_LONGEST_NAME = 90
_NOT_COLLECTED = ("Could not collect", "Module Not Found", "Not Available", "Not found", "N/A", "N/A (dev)", "Not Set")
"""What collect_env of torch and vLLM and SGLang's check_env print for what they did not find."""
_IN_ORDER = frozenset(
    {"0", "0 MiB", "No", "None", "N/A", "Not Active", "Not Supported", "[Not Supported]", "Disabled", "Enabled"}
)
"""Values of ``nvidia-smi -q`` behind the name of an error or of a state that is not there."""
_ULIMIT = Pattern(r"[A-Za-z][A-Za-z -]{3,40} \((?:[\w -]{1,20}, )?-[A-Za-z]\) \S{1,24}")
_PROC_LIMIT = Pattern(r"Max [a-z -]{3,30} (?:unlimited|\d{1,20}) (?:unlimited|\d{1,20})(?: [a-z]{1,20})?")
_DPKG = Pattern(r"[uirph][ncHUFWtTi]R? [a-z0-9][\w.+:-]{1,120} \d[\w.+:~-]{0,80} [a-z0-9]{2,12}(?: .{0,400})?")
_APT = Pattern(r"[a-z0-9][\w.+-]{1,120}/[\w,.-]{1,80} \d[\w.+:~-]{0,80} [a-z0-9]{2,12}(?: \[[\w ,:.~+-]{1,120}\])?")
_CONDA = Pattern(r"[\w.-]{1,120} \d[\w.+!~-]{0,60} (?:\d{1,4}|\w{1,60}_\d{1,4}|py[\w.]{1,40})(?: [\w./:-]{1,120})?")
_PIP = Pattern(r"(?:\[\w{2,8}\] )?[A-Za-z0-9][\w.-]{0,120}(?:==| @ )\S{1,300}")
_CONTAINER = Pattern(r"[0-9a-f]{12} \S{1,160} \".{1,300} Up .{1,200}")


def is_row(text: str) -> bool:
    """Whether ``text``, a whole line, is a row of an inventory in which nothing is wrong."""
    if not text or len(text) > LONGEST:
        return False
    return _is_answer(text) or _is_table_row(text.strip())


def _is_answer(text: str) -> bool:
    """``name: value``, where the value says that there is nothing; indented ones are those of nvidia-smi."""
    shown = text.rstrip()
    name, colon, value = shown.rpartition(": ")
    if colon and len(name.strip()) <= _LONGEST_NAME:
        is_smi = shown.startswith("  ") and name.endswith(" ") and value in _IN_ORDER
        is_absent = value.strip() in _NOT_COLLECTED or (" : <" in name and value.startswith("No module named '"))
        return is_smi or is_absent or shown.lstrip().startswith("Vulnerability ")
    return shown.startswith("[") and shown.partition("] ")[2] in _NOT_COLLECTED


def _is_table_row(text: str) -> bool:
    forms = (_ULIMIT, _PROC_LIMIT, _DPKG, _CONDA, _CONTAINER) if "  " in text else (_APT, _PIP)
    columns = " ".join(text.split())
    return any(form.fullmatch(columns) is not None for form in forms)
