"""Secrets that neither their form nor a name gives away, but what stands around them: a command, a file's layout, a sentence."""

import re
from typing import Dict, Pattern, Tuple

CONTEXTS: Dict[str, Pattern[str]] = {
    "webhook": re.compile(
        r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/[A-Z0-9]{5,20}/[A-Z0-9]{5,20}/(?P<secret>[A-Z0-9/]{8,100})"
        r"|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/(?P<secret2>[A-Z0-9_-]{20,120})"
    ),
    "signed URL": re.compile(
        r"(?i)[?&;](?:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token)|[a-z_-]{0,20}(?:token|key|secret|password|passwd))"
        r"=(?P<secret>[^\s&\"'<>;]{8,4000})"
    ),
    "user and password": re.compile(
        r"(?i)\b(?:curl|wget)\b[^\n|;]{0,200}?\s(?:-u|--user|--proxy-user)[\s=]{1,2}['\"]?[^\s:'\"]{1,100}:(?P<secret>[^\s'\"]{3,500})"
        r"|\bsshpass\s{1,3}-p\s{0,3}['\"]?(?P<secret2>[^\s'\"]{3,500})"
    ),
    "login": re.compile(
        r"\blogin\b[^\n|;]{0,200}?\s-p[\s=]{1,2}['\"]?(?P<secret>[^\s'\"-][^\s'\"]{2,500})"
        r"|\bmysql(?:dump|admin)?\b[^\n|;]{0,200}?\s-p(?P<secret2>[^\s'\"=]{3,200})"
    ),
    ".netrc": re.compile(
        r"\b(?:machine\s{1,8}[^\s]{1,200}|default)\s{1,8}(?:login\s{1,8}[^\s]{1,200}\s{1,8})?(?:account\s{1,8}[^\s]{1,200}\s{1,8})?password\s{1,8}(?P<secret>[^\s\"']{3,500})"
    ),
    "cookie": re.compile(r"(?i)\bcookie['\"]?\s{0,2}:\s{0,2}['\"]?(?P<secret>[a-z0-9_.-]{1,60}=[^\n'\"]{8,4000})"),
}
"""Group ``secret`` (or ``secret2``) is what is taken out, whatever it looks like."""

CONTEXT_HINTS: Dict[str, Tuple[str, ...]] = {
    "webhook": ("hooks.slack.com", "/webhooks/"),
    "signed URL": ("sig=", "signature=", "credential=", "token=", "key=", "secret=", "password=", "passwd="),
    "user and password": ("-u", "--proxy-user", "sshpass"),
    "login": (" -p",),
    ".netrc": ("password",),
    "cookie": ("cookie",),
}
"""What a text (in lower case) must hold for a context to be worth looking for."""

IN_WORDS = re.compile(
    r"(?i)\b(?:password|passphrase|passcode|token|secret|api[ -]?key|key)\s{1,3}(?:(?:is|was|are|provided|used|given|=>)\s{0,3})?[:=]?\s{0,3}"
    r"['\"`(]?(?P<secret>[A-Za-z0-9+/=_~-]{16,200})"
)
"""A sentence that tells a key. What follows must look drawn: ``the token is expired`` tells none."""

MAYBE_NAMED = re.compile(
    r"(?i)(?P<name>(?:key(?:-data)?|auth|creds?|sig|signature|pat|pass|sas))(?P<between>[\"']?\s{0,3}[=:]\s{0,3}[\"']?)"
    r"(?P<secret>[A-Za-z0-9+/=_~.%-]{8,600})"
)
"""A name that stands for a secret in one program and for something harmless in the next: the value decides."""

MAYBE_NAME = re.compile(
    r"(?i)^(?:[A-Za-z0-9]{1,40}[_.-]){0,8}(?:key(?:-data)?|auth|creds?|sig|signature|pat|pass|sas)$"
)

MAYBE_HINTS = ("key", "auth", "cred", "sig", "pat", "pass", "sas")

VALUE_OF_NAMED = re.compile(
    r"(?i)\bname[\"']?\s{0,3}:\s{0,3}[\"']?(?P<name>[A-Za-z0-9_.-]{2,200})[\"']?\s{0,3},?\s{1,40}[\"']?value[\"']?\s{0,3}:\s{0,3}[\"']?"
    r"(?P<secret>[^\s\"',}]{1,4000})"
)
"""A variable as Kubernetes and Compose write it: ``- name: X`` and, on the next line, ``value: Y``."""

KUBERNETES_SECRET = re.compile(r"\bkind[\"']?\s{0,3}:\s{0,3}[\"']?Secret\b")

KUBERNETES_DATA = re.compile(
    r"(?:\bdata|\bstringData)[\"']?\s{0,3}:\s{0,3}(?P<data>\{[^{}]{1,100000}\}|(?:\n[ \t]{1,12}[^\n]{1,100000}){1,200})"
)

KUBERNETES_VALUE = re.compile(
    r"(?P<before>[A-Za-z0-9_.-]{1,250}[\"']?\s{0,3}:\s{1,3}[\"']?)(?P<secret>[^\s\"'|>{}][^\n\"',}]{0,100000})"
)

PASSWORD_OPTIONS = {
    "-p": ("login", "sshpass"),
    "-u": ("curl", "wget"),
    "--user": ("curl", "wget"),
    "--proxy-user": ("curl",),
}
"""Options whose meaning depends on the program: the option, and a word that the command must hold."""
