"""What a secret looks like: by its own form, by the name it stands under, by the option that carries it."""

import re
import string
from typing import Dict, Pattern, Tuple

TOKEN = re.compile(r"<redacted:(\d+)>")
"""What stands in the place of a secret. Equal numbers stand for equal secrets within one snapshot."""

FORMS: Dict[str, Pattern[str]] = {
    "private key": re.compile(
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?P<secret>.*?)(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        re.DOTALL,
    ),
    "password in a URL": re.compile(
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://(?:[^\s/@:'\"<>]{0,200}:(?P<secret>[^\s/'\"]{1,1000})|(?P<secret2>[^\s/@:'\"<>]{8,1000}))@(?=[\w\[])"
    ),
    "authorization header": re.compile(
        r"(?i)\bauthorization['\"]?\s{0,4}[:=]\s{0,4}['\"]?(?:bearer|basic|token|digest|negotiate)?\s{0,4}(?P<secret>(?!(?:bearer|basic|token|digest|negotiate)\b)[^\s'\",;]{4,4000})"
    ),
    "bearer token": re.compile(
        r"(?i)\bbearer\s{1,4}(?P<secret>(?=[A-Za-z._~+/=-]{0,4000}[0-9]|[A-Za-z._~+/=-]{20})[A-Za-z0-9._~+/=-]{8,4000})"
    ),
    "JSON web token": re.compile(
        r"(?P<secret>\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,8000}(?:\.[A-Za-z0-9_-]{0,4000})?)"
    ),
    "Hugging Face token": re.compile(r"(?<![A-Za-z0-9])(?P<secret>(?:hf_|api_org_)[A-Za-z0-9]{20,200})"),
    "API key": re.compile(
        r"(?:(?<![A-Za-z0-9_-])|(?<=/bot))(?P<secret>"
        r"(?:sk|rk|pk)-(?=[A-Za-z0-9_-]{0,400}[0-9])[A-Za-z0-9_-]{16,400}"
        r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,200}"
        r"|nvapi-[A-Za-z0-9_-]{20,200}"
        r"|gsk_[A-Za-z0-9]{20,200}"
        r"|rpa_[A-Za-z0-9]{20,200}"
        r"|AIza[A-Za-z0-9_-]{35}"
        r"|ya29\.[A-Za-z0-9_-]{20,1000}"
        r"|xox[abeoprs]-[A-Za-z0-9-]{10,300}"
        r"|hv[bs]\.[A-Za-z0-9_-]{20,300}"
        r"|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}"
        r"|r8_[A-Za-z0-9]{37,60}"
        r"|pplx-[A-Za-z0-9]{40,100}"
        r"|xai-[A-Za-z0-9]{60,200}"
        r"|tgp_v1_[A-Za-z0-9_-]{30,100}"
        r"|wandb_v1_[A-Za-z0-9_]{40,200}"
        r"|GOCSPX-[A-Za-z0-9_-]{20,60}"
        r"|dapi[0-9a-f]{32}(?:-\d{1,2})?(?![0-9A-Za-z])"
        r"|do[opr]_v1_[0-9a-f]{64}"
        r"|gl(?:sa|c)_[A-Za-z0-9_+/=]{30,400}"
        r"|tskey-[a-z]{2,20}-[A-Za-z0-9-]{20,200}"
        r"|NRA[KL]-[A-Z0-9]{27}"
        r"|lin_(?:api|oauth)_[A-Za-z0-9]{30,100}"
        r"|(?:csk-|tvly-(?:dev-|prod-)?|jina_|pcsk_|figd_|sntrys_|shp(?:at|ss|ca|pa)_|pscale_(?:tkn|pw|oauth)_|sq0[a-z]{3}-|lsv2_(?:pt|sk)_)"
        r"(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{22,300}"
        r"|(?:fw_|e2b_|ntn_|sbp_)(?=[A-Za-z]{0,200}[0-9])[A-Za-z0-9]{22,300}(?![A-Za-z0-9_])"
        r"|ATATT3x[A-Za-z0-9_=-]{40,300}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|pul-[0-9a-f]{40}|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{30,100}"
        r"|AGE-SECRET-KEY-1[A-Z0-9]{50,70}"
        r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"
        r")"
    ),
    "code host token": re.compile(
        r"(?<![A-Za-z0-9_])(?P<secret>gh[opsur]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}|gl(?:pat|dt|rt|cbt|ptt|soat|agent|oas|ft|imt)-[A-Za-z0-9_-]{20,100}"
        r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{32,400}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,100})"
    ),
    "cloud key": re.compile(
        r"(?<![A-Za-z0-9])(?P<secret>(?:(?:AKIA|ASIA|AGPA|AROA|ANPA)[0-9A-Z]{16}|LTAI[A-Za-z0-9]{12,26}))(?![0-9A-Za-z])"
    ),
}
"""Secrets that are known by their own form. Group ``secret`` (or ``secret2``) is what is taken out."""

FORM_HINTS: Dict[str, Tuple[str, ...]] = {
    "private key": ("private key",),
    "password in a URL": ("://",),
    "authorization header": ("authorization",),
    "bearer token": ("bearer",),
    "JSON web token": ("eyj",),
    "Hugging Face token": ("hf_", "api_org_"),
    "API key": (
        "k-", "k_", "nvapi-", "rpa_", "aiza", "ya29.", "xox", "hvs.", "hvb.", "sg.", "r8_", "pplx-", "xai-", "_v1_", "gocspx-", "dapi",
        "glsa_", "glc_", "tskey-", "nra", "lin_", "age-secret-key", ":aa",
        "fw_", "csk-", "tvly-", "jina_", "pcsk_", "e2b_", "figd_", "ntn_", "sntrys_", "sbp_", "shp", "pscale_", "sq0", "lsv2_", "atatt3x", "pmak-", "pul-", "dp.",
    ),
    "code host token": ("gh", "github_pat_", "gl", "npm_", "pypi-", "dckr_"),
    "cloud key": ("akia", "asia", "agpa", "aroa", "anpa", "ltai"),
}  # fmt: skip
"""What a text (in lower case) must hold for a form to be worth looking for: saves nine tenths of the time on a journal."""

NAME_HINTS = ("token", "secret", "passw", "passphrase", "passcode", "_pass", "pwd", "key", "credential", "cookie")
"""The same for telling names."""

NAME = (
    r"(?:[A-Za-z0-9]{1,40}[_.-]){0,8}"
    r"(?:[A-Za-z0-9]{0,20}(?:secrets?|password|passwd|passphrase|passcode|credentials?)"
    r"|(?:api|access|secret|private|signing|encryption|account|auth|master|admin|storage|license|ngc|app)[_.-]?keys?"
    r"|[A-Za-z0-9]{0,20}(?:api|access|secret|private|preshared|account|auth)Keys?|pre-?shared[_.-]?key"
    r"|(?:db|database|redis|mysql|postgres|pg|mongo|smtp|mail|ldap|admin|root|user|login|proxy|registry|docker|ssh|sudo|rabbitmq|amqp)[_.-]pass"
    r"|pwd|(?:hf|hub|auth|access|refresh|bearer|id|identity|registry|api|bot|session|csrf|personal|deploy|service)?[_.-]?token|cookie)"
    r"(?:[_.-](?:value|id))?"
)
"""A name under which a secret stands. ``tokens`` and ``tokenizer`` are no secrets here: engines count and load them."""

SENSITIVE_NAME = re.compile(r"(?i)^[_.-]{0,4}" + NAME + r"$")

NOT_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_.-])(?:pad|eos|bos|unk|sep|cls|mask|image|video|audio|special|stop|start|end|next|last|first|draft|per|num|max|min|total|new|"
    r"input|output|prompt|think|begin|eot|eom|placeholder|pool|accept|hot|each|one|image[_-]?pad|vision)[_.-]?token(?:[_.-]id)?$"
    r"|(?:^|[_.-])token[_.-]id$|^(?:OLD)?PWD$|(?:^|[_.-])(?:partition|primary|foreign|sort|cache|public|dict|state[_-]?dict)[_-]?keys?$"
)
"""Names that only look like the ones above: the vocabulary of language models, the shell's working directory."""

LAST_WORD = (
    r"(?:secrets?|password|passwd|passphrase|passcode|credentials?|keys?|pwd|pass|token|cookie)(?:[_.-](?:value|id))?"
)
"""How every such name ends. Searching for this first and reading the name backwards is five times as fast."""

NAME_BEFORE = re.compile(r"(?i)(?<![A-Za-z0-9_])" + NAME + r"\Z")

LONGEST_NAME = 400

NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"

ASSIGNMENT = re.compile(
    r"(?i)(?P<name>" + LAST_WORD + r")(?P<between>[\"']?\s{0,3}(?:=|:(?!:))\s{0,3}\[?\s{0,2})"
    r"(?:(?P<quote>[\"'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n]){1,4000})(?P=quote)|(?P<bare>[^\s\"',;&\]})]{1,4000}))"
)
"""``NAME=value``, ``name: value``, ``"name": "value"``, ``'api_key': ['value']``, from the last word of the name on."""

OPTION = re.compile(
    r"(?i)(?<![A-Za-z0-9_-])(?P<name>--?" + NAME + r")(?P<between>\s{1,4}|=)"
    r"(?:(?P<quote>[\"'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n]){1,4000})(?P=quote)|(?P<bare>(?!-)[^\s\"']{1,4000}))"
)
"""``--api-key value`` and ``--api-key=value`` on a command line that was joined to one text."""

HARMLESS_VALUE = re.compile(
    r"(?i)^(?:|none|null|nil|true|false|yes|no|on|off|unset|not set|missing|required|invalid|expired|\*+|x+|\.{3}|str|int|bool|bytes|dict|list|"
    r"optional\[.*|[-+]?[0-9]{1,9}(?:\.[0-9]+)?|<[a-z _:0-9-]*>|\$\{?[A-Z_a-z0-9]*\}?|%[a-z]|\{[a-z_0-9.]*\}?)$"
)
"""Values that hold no secret, whatever their name: unset, a number, a type, a reference to a variable."""

CODE_VALUE = re.compile(
    r"^(?:self|cls|os|args|kwargs|config|cfg|settings|request|server_args|hf|envs?|secrets|get_[A-Za-z_]+|str|bytes|len|getattr|input)[.\[(]"
    r"|^[A-Za-z_][A-Za-z_.]*\($"
)
"""Unquoted values that are program text in a traceback, not a secret: ``token=self.token``."""
