"""Other tongues: the texts are those of the programs' catalogues, and are read as what they are."""

from __future__ import annotations

import time

import pytest
from tests.logs.recognisers.reading import only, sample

from gpuwhy.logs.recognisers import tongues


@pytest.mark.parametrize(
    ("line", "kind", "tool", "english"),
    [
        ("k.c:1:10: schwerwiegender Fehler: no.h: Datei oder Verzeichnis nicht gefunden", "build", "gcc", "k.c:1:10: fatal error: no.h: No such file or directory"),
        ("k.c:1:10: erreur fatale: no.h: Aucun fichier ou dossier de ce type", "build", "gcc", "k.c:1:10: fatal error: no.h: No such file or directory"),
        ("k.c:1:10: фатальная ошибка: no.h: Нет такого файла или каталога", "build", "gcc", "k.c:1:10: fatal error: no.h: No such file or directory"),
        ("k.c:1:10: 致命错误：no.h：没有那个文件或目录", "build", "gcc", "k.c:1:10: fatal error: no.h: No such file or directory"),
        ("k.c:1:10: 致命的エラー: no.h: そのようなファイルやディレクトリはありません", "build", "gcc", "k.c:1:10: fatal error: no.h: No such file or directory"),
        ("/usr/bin/ld: no se puede encontrar -lcuda: No existe el fichero o el directorio", "build", "ld", "/usr/bin/ld: cannot find -lcuda: No such file or directory"),
        ("/usr/bin/ld: impossibile trovare -lcuda: File o directory non esistente", "build", "ld", "/usr/bin/ld: cannot find -lcuda: No such file or directory"),
        ("/usr/bin/ld: ne peut pas trouver -lcuda: Aucun fichier ou dossier de ce type", "build", "ld", "/usr/bin/ld: cannot find -lcuda: No such file or directory"),
        ("/usr/bin/ld: -lcuda kann nicht gefunden werden: Datei oder Verzeichnis nicht gefunden", "build", "ld", "/usr/bin/ld: cannot find -lcuda: No such file or directory"),
        ("/usr/bin/ld: -lcuda nicht gefunden", "build", "ld", "/usr/bin/ld: cannot find -lcuda"),
        ("/usr/bin/ld: ne peut trouver -lcuda", "build", "ld", "/usr/bin/ld: cannot find -lcuda"),
        ("/usr/bin/ld : impossible de trouver -lcuda : Aucun fichier ou dossier de ce type", "build", "ld", "/usr/bin/ld: cannot find -lcuda: No such file or directory"),
        ("/usr/bin/ld: no se encuentra -lcuda", "build", "ld", "/usr/bin/ld: cannot find -lcuda"),
        ("/usr/bin/ld: -lcudaが見つかりません", "build", "ld", "/usr/bin/ld: cannot find -lcuda"),
        ("/usr/bin/ld: 无法找到 -lcuda: 没有那个文件或目录", "build", "ld", "/usr/bin/ld: cannot find -lcuda: No such file or directory"),
        ("x.cpp:(.text+0x5): référence indéfinie vers « cuInit »", "build", "ld", "x.cpp:(.text+0x5): undefined reference to `cuInit'"),
        ("bash: nvcc: コマンドが見つかりません", "build", "sh", "bash: nvcc: command not found"),
        ("bash: nvcc\u00a0: commande introuvable", "build", "sh", "bash: nvcc: command not found"),
        ("bash: nvcc: 명령어를 찾을 수 없음", "build", "sh", "bash: nvcc: command not found"),
        ("start.sh: Zeile 3:  7887 Speicherzugriffsfehler  ./server", "crash", "signal", "Segmentation fault  ./server"),
        ("start.sh: ligne 3 :  7887 Erreur de segmentation  ./server", "crash", "signal", "Segmentation fault  ./server"),
        ("段错误 （核心已转储）", "crash", "signal", "Segmentation fault (core dumped)"),
        ("Ошибка шины (образ памяти сброшен на диск)", "crash", "signal", "Bus error (core dumped)"),
        ("start.sh: Zeile 1:  7889 Getötet                 python3 -m vllm", "death", "", "Killed                 python3 -m vllm"),
        ("죽었음", "death", "", "Killed"),
        ("Tué", "death", "", "Killed"),
        ("OSError: [Errno 28] Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "exception", "", "OSError: [Errno 28] No space left on device"),
        ("OSError: [Errno 98] Адрес уже используется", "exception", "", "OSError: [Errno 98] Address already in use"),
        ("OSError: [Errno 12] 메모리를 할당할 수 없습니다", "exception", "", "OSError: [Errno 12] Cannot allocate memory"),
        ("PermissionError: [Errno 13] Permissão negada: '/data/cache'", "exception", "", "PermissionError: [Errno 13] Permission denied: '/data/cache'"),
        ("vllm: error while loading shared libraries: libcuda.so.1: Kann die Shared-Object-Datei nicht öffnen", "crash", "loader", ""),
    ],
)  # fmt: skip
def test_a_message_is_read_as_what_it_is(line: str, kind: str, tool: str, english: str) -> None:
    event = only(line)
    assert (event.kind, event.tool, event.is_fatal, event.is_echo) == (kind, tool, True, False)
    assert event.text == line.replace("\u00a0", " "), "the event keeps its own words"
    if english:
        assert event.detail["english"] == english


def test_what_sums_up_stays_an_echo() -> None:
    assert only("make: *** [Makefile:3: all] Fehler 1").is_echo
    assert only("collect2: Fehler: ld gab 1 als Ende-Status zurück").is_echo


@pytest.mark.parametrize(
    "line",
    [
        "fatal error: no.h: No such file or directory",
        "Die Datei wurde geladen.",
        "El modelo está listo",
        "Modul nicht gefunden",
        "",
        "模型已加载",
    ],
)
def test_other_text_stays_as_it_is(line: str) -> None:
    assert tongues.english(line) == line


def test_every_message_of_the_catalogues_has_a_literal_and_becomes_its_english() -> None:
    assert all(len(literal) > 1 for literal in tongues.LITERALS)
    for english, texts in tongues._CATALOGUES.messages.items():
        for text in texts:
            names = iter(("one", "two", "three"))
            line = "".join(part if part != "%s" else next(names) for part in _parts(text))
            assert english.split("%s")[0].strip(" `'") in tongues.english(line), line


def _parts(text: str) -> list[str]:
    pieces = text.split("%s")
    return [each for pair in zip(pieces, ["%s"] * (len(pieces) - 1) + [""], strict=True) for each in pair]


def test_hostile_text_takes_no_time() -> None:
    begun = time.process_time()
    for token in ("Fehler: ", "段错误 ", "a: 1 ", "« x » ", "Datei oder ", "] Erro ", "( "):
        tongues.english(token * 2000)
    assert time.process_time() - begun < 1.0


def test_what_real_shells_and_linkers_print() -> None:
    """bash, ld, cat, ls and make, each run in German, French, Spanish, Russian, Japanese and Chinese."""
    found = sample("tongues.txt").events
    kinds = [(event.kind, event.tool) for event in found if event.kind != "warning"]
    assert kinds.count(("build", "sh")) == 6
    assert kinds.count(("crash", "signal")) == 6
    assert kinds.count(("death", "")) == 6
    assert kinds.count(("build", "ld")) == 6
    assert kinds.count(("build", "make")) == 6
    linkers = {event.detail["english"] for event in found if event.tool == "ld"}
    assert linkers == {"/usr/bin/ld: cannot find -lcuda: No such file or directory"}
    assert (
        sum("No such file or directory" in event.detail["english"] for event in found if event.kind == "warning") == 12
    )
