"""Ansible's inventories: the hosts that Ansible would name, reached as it would reach them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuwhy.fleet.engines.interface import FleetError
from gpuwhy.fleet.inventory import InventoryHost, expanded, read_inventory
from gpuwhy.fleet.ssh_config import config_of, without_config

INI = """\
# the inference cluster
login ansible_host=10.0.0.1   ; not a GPU
jump:2222

[gpu]
gpu[001:003] ansible_user=ops
gpu009 ansible_host=10.0.0.9 ansible_port=2200 note="a b"

[rack_b]
b[a:c]-[1:3:2]

[all_gpu:children]
gpu
rack_b

[all_gpu:vars]
ansible_user = gpuadmin
ansible_ssh_common_args = '-o ProxyJump=bastion -o "ConnectTimeout 3"'

[gpu:vars]
ansible_port=22022
"""

YAML = """\
all:
  vars: {ansible_user: root}
  hosts:
    login: {ansible_host: 10.0.0.1}
  children:
    gpu:
      hosts:
        gpu[001:003]: {ansible_port: 2222}
      children:
        big: {hosts: {gpu100: }}
      vars: {ansible_user: ops}
"""


def written(tmp_path: Path, text: str, name: str = "hosts") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_ranges_have_both_ends() -> None:
    assert list(expanded("gpu[008:011]")) == ["gpu008", "gpu009", "gpu010", "gpu011"]
    assert list(expanded("r[a:c]-[1:5:2]")) == ["ra-1", "ra-3", "ra-5", "rb-1", "rb-3", "rb-5", "rc-1", "rc-3", "rc-5"]
    assert list(expanded("plain")) == ["plain"]


def test_groups_in_groups_are_followed(tmp_path: Path) -> None:
    path = written(tmp_path, INI)
    assert [host.name for host in read_inventory(path, "gpu")] == ["gpu001", "gpu002", "gpu003", "gpu009"]
    assert len(read_inventory(path, "all_gpu")) == 4 + 6
    assert len(read_inventory(path)) == 2 + 4 + 6


def test_a_pattern_takes_away_and_keeps(tmp_path: Path) -> None:
    path = written(tmp_path, INI)

    def names(pattern: str) -> list[str]:
        return [host.name for host in read_inventory(path, pattern)]

    assert names("gpu:!gpu002") == ["gpu001", "gpu003", "gpu009"]
    assert names("all,&gpu") == names("gpu")
    assert names("gpu00*,login") == ["gpu001", "gpu002", "gpu003", "gpu009", "login"]
    assert names("gpu[001:002]") == ["gpu001", "gpu002"]


def test_a_hosts_own_variables_count_before_its_groups(tmp_path: Path) -> None:
    found = {host.name: host for host in read_inventory(written(tmp_path, INI))}
    jump = '-o ProxyJump=bastion -o "ConnectTimeout 3"'
    assert found["gpu001"] == InventoryHost("gpu001", user="ops", port="22022", common=jump)
    assert found["gpu009"] == InventoryHost("gpu009", "10.0.0.9", "gpuadmin", "2200", common=jump)
    assert found["jump"] == InventoryHost("jump", port="2222")


def test_yaml_says_the_same(tmp_path: Path) -> None:
    found = {host.name: host for host in read_inventory(written(tmp_path, YAML, "hosts.yml"))}
    assert found["login"] == InventoryHost("login", "10.0.0.1", "root")
    assert found["gpu002"] == InventoryHost("gpu002", user="ops", port="2222")
    assert found["gpu100"] == InventoryHost("gpu100", user="ops")
    assert [host.name for host in read_inventory(written(tmp_path, YAML, "hosts.yml"), "big")] == ["gpu100"]


def test_ssh_reaches_a_host_as_the_inventory_says(tmp_path: Path) -> None:
    config = tmp_path / "config"
    users = written(
        tmp_path, "Host gpu*\n  User nobody\n  ServerAliveInterval 77\nHost other\n  User someone\n", "users"
    )
    config.write_text(config_of(read_inventory(written(tmp_path, INI), "gpu,login"), f"-v -F {users}"))

    def asked(host: str) -> dict[str, str]:
        ssh = shutil.which("ssh") or "ssh"
        said = subprocess.run([ssh, "-G", "-F", str(config), host], capture_output=True, text=True, check=True)
        return dict(line.split(" ", 1) for line in said.stdout.splitlines() if " " in line)

    found = asked("gpu009")
    assert [found[key] for key in ("hostname", "user", "port", "proxyjump", "connecttimeout", "serveraliveinterval")] == [
        "10.0.0.9", "gpuadmin", "2200", "bastion", "3", "77",
    ]  # fmt: skip
    assert asked("login")["hostname"] == "10.0.0.1"
    assert asked("other")["user"] == "someone"
    assert without_config(f"-v -F {users} -p 3").split() == ["-v", "-p", "3"]


def test_what_ssh_could_not_follow_is_said(tmp_path: Path) -> None:
    hosts = read_inventory(written(tmp_path, "a ansible_ssh_common_args='-W x:1'\n"))
    with pytest.raises(FleetError, match="-W"):
        config_of(hosts)
    with pytest.raises(FleetError, match="cannot hold"):
        config_of([InventoryHost("a", 'x"\n  ProxyCommand touch /tmp/x')])


@pytest.mark.parametrize(
    ("text", "asked", "said"),
    [
        ("a\n", "b", "no host or group 'b'"),
        ("[gpu\n[x:y]\n", "", "no section"),
        ("a 'b\n", "", "closing quotation"),
        ("gpu[1:999999999]\n", "", "more than"),
        ("gpu[a:99]\n", "", "no range"),
        ("", "", "names no hosts"),
        ("---\na: [\n", "", "no YAML"),
    ],
)
def test_what_cannot_be_an_inventory_is_refused_in_words(tmp_path: Path, text: str, asked: str, said: str) -> None:
    with pytest.raises(FleetError, match=said):
        read_inventory(written(tmp_path, text), asked)


def test_a_dynamic_one_is_left_to_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = Path(written(tmp_path, "#!/bin/sh\necho {}\n", "cloud.sh"))
    inventory.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(FleetError, match="ansible-inventory"):
        read_inventory(str(inventory))
    # what ansible-inventory of ansible-core 2.19 prints for a program of that kind
    answer = {
        "_meta": {"hostvars": {"gpu1": {"ansible_host": "10.1.1.1", "tags": ["x"]}}},
        "all": {"children": ["ungrouped", "gpu"]},
        "gpu": {"hosts": ["gpu1", "gpu2"]},
    }
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "ansible-inventory"
    stand_in.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{json.dumps(answer)}\nEND\n")
    stand_in.chmod(0o755)
    assert read_inventory(str(inventory), "gpu") == [InventoryHost("gpu1", "10.1.1.1"), InventoryHost("gpu2")]
