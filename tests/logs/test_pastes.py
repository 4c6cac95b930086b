"""What reports, consoles, chats and trackers do to a log on its way: the same traceback comes out of each."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest

from gpuwhy.logs import find_events, read_report
from gpuwhy.model.event import Frame, Process

TRACEBACK = """\
Traceback (most recent call last):
  File "/opt/serve.py", line 21, in <module>
    load()
RuntimeError: FlashInfer requires GPUs with sm75 or higher"""


def each(prefix: str, text: str) -> str:
    return "\n".join(prefix + line for line in text.split("\n"))


LOG = each("(EngineCore_DP0 pid=88) ERROR 08-03 17:45:53 [core.py:700] ", TRACEBACK)
STAMPED = each("2026-11-29 10:07:46,123 ERROR ", TRACEBACK)

WRAPPINGS: dict[str, Callable[[str], str]] = {
    "fence": lambda log: (
        f"### Your current environment\n\n```text\nGPU 0\n```\n\n### Describe the bug\n\n```\n{log}\n```\n"
    ),
    "tilde fence": lambda log: f"~~~console\n{log}\n~~~\n",
    "fence never closed": lambda log: f"### Bug\n```\n{log}\n",
    "fence in a list": lambda log: f"1. run\n   ```bash\n   x\n   ```\n2. see\n   ```\n{each('   ', log)}\n   ```\n",
    "four ticks": lambda log: f"### Bug\n````\n```\n{log}\n```\n````\n",
    "ticks on every line": lambda log: "### Bug\n" + "\n".join(f"`{line}`" for line in log.split("\n")),
    "quote": lambda log: each("> ", f"I ran it\n\n{log}\n"),
    "quoted fence": lambda log: each("> ", f"I ran it\n\n```\n{log}\n```\n"),
    "quote in a quote": lambda log: each("> > ", log),
    "mail": lambda log: each(">", log),
    "escaped quote": lambda log: each("&gt; ", html.escape(log, quote=False)),
    "details": lambda log: f"<details>\n<summary>log</summary>\n\n```\n{log}\n```\n\n</details>\n",
    "details in one line": lambda log: f"<details><summary>log</summary><pre>{html.escape(log)}</pre></details>\n",
    "pre and code": lambda log: f"<pre><code>{html.escape(log)}\n</code></pre>",
    "line breaks": lambda log: "<br>\n".join(html.escape(log).split("\n")),
    "paragraphs": lambda log: "".join(f"<p>{html.escape(line)}</p>\n" for line in log.split("\n")),
    "indented code": lambda log: f"### Bug\n\nMy log:\n\n{each('    ', log)}\n\nThanks\n",
    "code behind tabs": lambda log: f"### Bug\n\nMy log:\n\n{each(chr(9), log)}\n\nThanks\n",
    "indented, no report": lambda log: f"My log:\n\n{each('    ', log)}\n\nThanks\n",
    "backslashes of an editor": lambda log: "### Bug\n_a_ \\_b\\_\n" + log.replace("_", "\\_"),
    "windows line ends": lambda log: f"### x\n\n```\n{log}\n```\n".replace("\n", "\r\n"),
    "blank lines between": lambda log: log.replace("\n", "\n\n"),
    "no-break spaces": lambda log: log.replace("  ", "\u00a0\u00a0"),
    "invisible spaces": lambda log: each("\u200b", log),
    "colours": lambda log: "\n".join(f"\x1b[1;31m{line}\x1b[0m" for line in log.split("\n")),
    "colours without escape": lambda log: "\n".join(f"[1;31m{line}[0m" for line in log.split("\n")),
    "colours behind ^[": lambda log: "\n".join(f"^[[31m{line}^[[0m" for line in log.split("\n")),
    "colours of less": lambda log: "\n".join(f"ESC[31m{line}ESC[0m" for line in log.split("\n")),
    "colours spelt out": lambda log: "\n".join(f"\\u001b[31m{line}\\u001b[0m" for line in log.split("\n")),
    "line numbers": lambda log: "\n".join(f"{n:>4} | {line}" for n, line in enumerate(log.split("\n"), 1)),
    "behind a progress bar": lambda log: f"Loading shards:  50%|##  | 1/2 [00:01<00:01,  1.2s/it]{log}",
    "in one line": lambda log: 'State: "' + log.replace("\n", "\\n").replace('"', '\\"') + '\\n"',
}


@pytest.mark.parametrize("name", WRAPPINGS)
@pytest.mark.parametrize("log", [LOG, STAMPED], ids=["vllm", "logging"])
def test_the_traceback_comes_out(log: str, name: str) -> None:
    (event,) = [event for event in find_events(read_report(WRAPPINGS[name](log))) if event.kind == "exception"]
    (block,) = event.exceptions
    assert (block.type, block.message) == ("RuntimeError", "FlashInfer requires GPUs with sm75 or higher")
    assert block.frames == (Frame("/opt/serve.py", 21, "<module>", "load()"),)
    assert event.process == (Process("EngineCore_DP0", 88) if log is LOG else None)


@pytest.mark.parametrize("name", WRAPPINGS)
def test_lines_keep_their_numbers(name: str) -> None:
    text = WRAPPINGS[name](LOG).replace("\r\n", "\n")
    for line in read_report(text).lines:
        if line.text.startswith("RuntimeError"):
            assert "RuntimeError: FlashInfer" in text.split("\n")[line.number - 1]


POWERSHELL = """\
starting
{program} : Traceback (most recent call last):
{place}
+ python serve.py 2> crash.log
+ ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    + CategoryInfo          : NotSpecified: (Traceback (most recent call last)::String) [], RemoteException
    + FullyQualifiedErrorId : NativeCommandError

  File "C:\\opt\\serve.py", line 21, in <module>
    load()
RuntimeError: boom
"""


@pytest.mark.parametrize(
    "place",
    [
        "At line:1 char:1",
        "At C:\\x\\run.ps1:14 char:3",
        "所在位置 行:1 字符: 1",
        "In Zeile:1 Zeichen:1",
        "発生場所 行:1 文字:1",
    ],
)
@pytest.mark.parametrize("program", ["python", "C:\\opt\\python.exe"])
def test_error_records_of_powershell(program: str, place: str) -> None:
    log = read_report(POWERSHELL.format(program=program, place=place))
    assert [line.text for line in log.lines] == [
        "starting",
        "Traceback (most recent call last):",
        '  File "C:\\opt\\serve.py", line 21, in <module>',
        "    load()",
        "RuntimeError: boom",
    ]
    assert [line.number for line in log.lines] == [1, 2, 9, 10, 11]


@pytest.mark.parametrize(
    "text",
    [
        "indices[0m] = 3 in [32m long] tunnels",
        "copy C:\\_build\\_x to C:\\_out",
        "a < b > c && d",
        "Traceback (most recent call last):\n    indented by four\n    and again\n    and again",
    ],
)
def test_what_only_looks_wrapped_stays(text: str) -> None:
    lines = [line.text for line in read_report(text).lines]
    assert lines == [
        line.replace("[0m", "").replace("[32m", "") if "[0m" in text else line for line in text.split("\n")
    ]
