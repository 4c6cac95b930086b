"""Names go when a snapshot is made public; what a diagnosis needs stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.investigate.test_differences import CRASH, NEW, host

from gpuwhy.investigate import investigate
from gpuwhy.snapshot import Probe, Snapshot, Subject, encode
from gpuwhy.snapshot.anonymising import KINDS, anonymised, parse_kinds
from gpuwhy.targets import PathTarget


def of(*texts: Any, **variables: str) -> Snapshot:
    values = {"journal": {"entries": list(texts)}, "environment": {"variables": variables}, "packages": [{"versions": {"nvidia-cudnn-cu12": "9.10.2.21"}}]}  # fmt: skip
    probes = tuple(Probe(name=name, status="ok", value=value) for name, value in values.items())
    return Snapshot(target=Subject("ssh", "alice@gpu7.corp.lan:2222"), started=0.0, probes=probes)


def texts(snapshot: Snapshot) -> list[Any]:
    entries: list[Any] = snapshot.value("journal")["entries"]
    return entries


def test_hosts_have_one_stand_in_everywhere() -> None:
    public = anonymised(
        of("gpu7.corp.lan up", "GET http://models.corp.lan:8000/x", "https://huggingface.co/x"), ("hosts",)
    )
    assert texts(public) == ["host-1 up", "GET http://host-2:8000/x", "https://huggingface.co/x"]
    assert public.target.name == "alice@host-1:2222"
    assert public.redacted == {"hosts": 3}


def test_addresses_become_addresses_of_a_range_for_tests() -> None:
    public = anonymised(
        of(
            "tcp://10.1.2.3:29500 and 10.1.2.4, again 10.1.2.3",
            "listen on 0.0.0.0:8000, 127.0.0.1",
            "inet6 fe80::1ff:fe23:4567:890a mac 02:42:ac:11:00:02",
            "at 09:36:50 c10::Error std::a::b",
        ),
        ("ips",),
    )
    assert texts(public) == [
        "tcp://198.18.0.1:29500 and 198.18.0.2, again 198.18.0.1",
        "listen on 0.0.0.0:8000, 127.0.0.1",
        "inet6 2001:db8::4 mac 00:00:5e:00:53:03",
        "at 09:36:50 c10::Error std::a::b",
    ]


@pytest.mark.parametrize(
    "text",
    ["nvidia-cudnn-cu12 9.10.2.21", "nvidia-curand-cu12==10.3.9.90", "cuFFT version 11.3.3.83", "9.10.2.21", "libcudnn.so.9.10.2.21", "v1.2.3.4"],
)  # fmt: skip
def test_versions_of_four_numbers_are_no_addresses(text: str) -> None:
    assert texts(anonymised(of(text), ("ips",))) == [text]


def test_users_go_and_ordinary_accounts_stay() -> None:
    public = anonymised(of("/home/alice/run.sh as alice", "malice", "root@x /root/x /home/ubuntu/y"), ("users",))
    assert texts(public) == ["/home/user-1/run.sh as user-1", "malice", "root@x /root/x /home/ubuntu/y"]


def test_folders_that_people_named_go_and_what_is_below_site_packages_stays() -> None:
    public = anonymised(
        of(
            'File "/data/acme/titan/.venv/lib/python3.12/site-packages/flashinfer/jit/core.py", line 109, in check',
            "/usr/local/cuda-12.8/bin/nvcc /proc/7/environ /dev/shm",
            "/data/acme/launch.py",
            "/root/.cache/flashinfer/0.6.12/120f/cached_ops/sampling/sampling.so",
            "https://github.com/a/b",
        ),
        ("paths",),
    )
    assert texts(public) == [
        'File "/data/dir-1/dir-2/.venv/lib/python3.12/site-packages/flashinfer/jit/core.py", line 109, in check',
        "/usr/local/cuda-12.8/bin/nvcc /proc/7/environ /dev/shm",
        "/data/dir-1/dir-3.py",
        "/root/.cache/flashinfer/0.6.12/120f/cached_ops/sampling/sampling.so",
        "https://github.com/a/b",
    ]


def test_doing_it_twice_changes_nothing() -> None:
    once = anonymised(of("alice@gpu7.corp.lan /data/acme/x 10.1.2.3", HOSTNAME="gpu7"), KINDS)
    assert anonymised(once, KINDS) == once


def test_the_diagnosis_of_a_public_snapshot_is_the_same(tmp_path: Path) -> None:
    snapshot = host(NEW, CRASH.read_text())
    answers = []
    for number, each in enumerate((snapshot, anonymised(snapshot, KINDS))):
        path = tmp_path / f"{number}.json"
        path.write_bytes(encode(each))
        answers.append(investigate(PathTarget(str(path))))
    before, after = ([(each.cause, each.certainty, each.component) for each in answer.findings] for answer in answers)
    assert before
    assert before == after
    assert "gpu-host" not in json.dumps(msgspec.to_builtins(anonymised(snapshot, KINDS)))


def test_kinds_are_parsed_or_refused_in_words() -> None:
    assert parse_kinds("hosts, ips") == ("hosts", "ips")
    assert parse_kinds("all") == KINDS
    with pytest.raises(ValueError, match="colours: choose of hosts, ips, users, paths, or all"):
        parse_kinds("hosts,colours")
    with pytest.raises(ValueError, match="nothing"):
        parse_kinds("")


@pytest.mark.parametrize(
    "group", ["/system.slice/sglang.service", "/docker/" + "a1" * 32, "/user.slice/user-1000.slice/session-3.scope"]
)
def test_whom_the_kernel_killed_stays_to_be_seen(group: str) -> None:
    line = f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={group},task_memcg={group},task=sglang,pid=7,uid=0"  # fmt: skip
    assert texts(anonymised(of(line), ("paths",))) == [line]


def test_a_folder_with_commas_is_one() -> None:
    assert texts(anonymised(of("/data/acme,inc/x,y.txt", "in /data/acme/a,b=/data/acme/c"), ("paths",))) == [
        "/data/dir-1/dir-2.txt",
        "in /data/dir-3/dir-4,b=/data/dir-3/dir-5",
    ]
