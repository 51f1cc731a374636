"""The wheel, built from the source distribution and installed into a clean environment."""

import json
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
HAS_COMPILER = subprocess.run(["which", "cc"], capture_output=True).returncode == 0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.xdist_group("packaging")]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    result = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the tracked files, as in a clean checkout: without what was compiled here."""
    source = tmp_path_factory.mktemp("source")
    tracked = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for name in filter(None, tracked):
        if not name.startswith(("tests/", "bench/")) and (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    place = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", place, source)
    return next(place.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", place, sdist)
    return next(place.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel and the packages that it declares, without any extra.

    The packages are links to those of this environment, to save downloads.
    """
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=True)
    run(place / "bin" / "python", "-m", "pip", "install", "--no-deps", wheel)
    packages = next((place / "lib").glob("python*/site-packages"))
    for distribution in required_by("kctl"):
        for file in metadata.files(distribution) or ():
            name, link = file.parts[0], packages / file.parts[0]
            if name not in ("..", "__pycache__") and not link.exists():
                link.symlink_to(Path(sysconfig.get_paths()["purelib"]) / name)
    return place


def required_by(distribution: str) -> set[str]:
    """All distributions that one needs without extras, directly or indirectly."""
    found: set[str] = set()
    wanted = [distribution]
    while wanted:
        for line in metadata.requires(wanted.pop()) or ():
            requirement = Requirement(line)
            is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if is_needed and requirement.name not in found:
                found.add(requirement.name)
                wanted.append(requirement.name)
    return found


def test_sdist_has_what_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "broker/records/scan.pxd", "man/kctl.1", "completions/kctl.bash"} <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]


def test_wheel_has_compiled_modules_types_and_license(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "kctl/py.typed" in names
    assert "broker/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    if HAS_COMPILER:
        for module in ("decoder", "scan"):
            prefix = f"broker/records/{module}."
            assert any(n.startswith(prefix) and n.endswith(".so") for n in names), module


def test_commands_man_pages_and_completions_are_installed(environment: Path) -> None:
    assert run(environment / "bin" / "kctl", "--version").startswith("kctl ")
    assert "--override" in run(environment / "bin" / "kctl-broker", "--help")
    assert (environment / "share/man/man1/kctl.1").is_file()
    assert (environment / "share/man/man8/kctl-broker.8").is_file()
    pages = {page.name for page in (ROOT / "man").iterdir()}
    assert pages == {page.name for page in (environment / "share/man").rglob("*.[18]")}
    scripts = {script.name for script in (ROOT / "completions").iterdir()}
    assert scripts == {path.name for path in (environment / "share/kctl/completions").iterdir()}
    script = run(environment / "bin" / "kctl", "completion", "bash")
    assert script == (ROOT / "completions" / "kctl.bash").read_text()


@pytest.mark.skipif(not HAS_COMPILER, reason="there is no C compiler")
def test_installed_modules_are_the_compiled_ones(environment: Path, tmp_path: Path) -> None:
    code = "from broker.records import decoder, scan; print(decoder.__file__, scan.__file__)"
    files = run(environment / "bin" / "python", "-c", code, cwd=tmp_path).split()
    assert all(Path(f).is_relative_to(environment) and f.endswith(".so") for f in files), files


def test_declared_versions_of_python_are_those_of_the_classifiers(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    lines = archive.read(name).decode().splitlines()
    assert "Requires-Python: >=3.11" in lines
    declared = [line for line in lines if line.startswith("Classifier: Programming Language")]
    assert [line.rpartition(" ")[2] for line in declared] == ["3.11", "3.12", "3.13", "3.14"]


def test_environment_has_no_optional_package(environment: Path, tmp_path: Path) -> None:
    code = "import pyarrow"
    done = subprocess.run([environment / "bin" / "python", "-c", code], capture_output=True)
    assert b"No module named 'pyarrow'" in done.stderr
    listing = subprocess.run(
        [environment / "bin" / "kctl", "spark-export", "list", tmp_path],
        capture_output=True,
        text=True,
    )
    assert "pip install 'kctl[spark]'" in listing.stderr


def test_installed_broker_serves_the_installed_kctl(environment: Path, tmp_path: Path) -> None:
    """`kctl dev up` starts the broker of the same installation."""
    kctl = environment / "bin" / "kctl"
    ask = (environment / "bin" / "python", "-c", "import kctl; print(kctl.__file__)")
    assert Path(run(*ask, cwd=tmp_path).strip()).is_relative_to(environment)
    run(kctl, "dev", "up", "--dir", tmp_path, "--port", "0", cwd=tmp_path)
    try:
        status = run(kctl, "dev", "status", "--dir", tmp_path, "-o", "json", cwd=tmp_path)
        (broker,) = json.loads(status)
        assert broker["status"] == "running", broker
    finally:
        run(kctl, "dev", "down", "--dir", tmp_path, cwd=tmp_path)
