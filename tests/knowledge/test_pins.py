from __future__ import annotations

from packaging.version import Version

from gpuwhy.knowledge import pins


def test_pin_of_a_listed_release() -> None:
    pin = pins.flashinfer_of("sglang", "0.5.15")
    assert pin is not None
    assert (pin.specifier, pin.exact, pin.version) == ("==0.6.12", True, "0.6.12")
    assert pin.provenance == "measured: METADATA of sglang 0.5.15"


def test_pin_of_an_optional_feature_names_it() -> None:
    pin = pins.flashinfer_of("sglang", "0.4.4")
    assert pin is not None
    assert pin.extra == "srt"
    assert pin.version == "0.2.3"


def test_release_that_is_not_listed_gives_the_bounds_of_its_neighbours() -> None:
    pin = pins.flashinfer_of("sglang", "0.4.6")
    assert pin is not None
    assert pin.specifier is None
    assert pin.version is None
    assert pin.between == ("0.2.3", "0.2.5")
    assert "not listed" in pin.why


def test_release_outside_the_list_is_unknown() -> None:
    assert pins.flashinfer_of("sglang", "9.0") is None
    assert pins.flashinfer_of("sglang", "banana") is None
    assert pins.flashinfer_of("no-such-engine", "1.0") is None


def test_renamed_kernel_package() -> None:
    old, new = pins.sgl_kernel_of("0.5.9"), pins.sgl_kernel_of("0.5.10")
    assert old is not None
    assert new is not None
    assert old.package == "sgl-kernel"
    assert new.package == "sglang-kernel"


def test_first_release_with_a_version() -> None:
    assert pins.first_release_with("sglang", "flashinfer-python", "0.7.1") == "0.5.22"
    assert pins.first_release_with("sglang", "flashinfer-python", "99") is None
    vllm = pins.first_release_with("vllm", "flashinfer-python", "0.7.1")
    assert vllm is not None
    pin = pins.flashinfer_of("vllm", vllm)
    assert pin is not None
    assert Version(pin.version or "0") >= Version("0.7.1")


def test_releases_that_pin_an_affected_version() -> None:
    affected = pins.releases_pinning(
        "flashinfer_python", lambda version: Version("0.6.7") <= Version(version) < Version("0.7.1"), engine="sglang"
    )
    versions = [pin.engine_version for pin in affected]
    assert versions[0] == "0.5.10"
    assert versions[-1] == "0.5.21"
    assert "0.5.15" in versions


def test_whether_a_pin_admits_a_version() -> None:
    pin = pins.flashinfer_of("sglang", "0.5.15")
    assert pin is not None
    assert pins.admits(pin, "0.7.1") is False
    assert pins.admits(pin, "0.6.12") is True
