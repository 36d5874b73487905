"""The start of the zipapp, with a small one in place of the exporter: where it unpacks, and what it refuses in one line."""

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from deploy_tools import DEPLOY, module_of, need_root, ran

pytestmark = pytest.mark.ci

RELEASE = DEPLOY / "release"
CONTENT = {
    "roce_exporter/__init__.py": "",
    "roce_exporter/cli.py": "import sys\ndef main():\n    print(__file__, *sys.argv[1:])\n    return 7\n",
    "bcrypt.py": "",
    "psutil.py": "",
    "yaml/_yaml.cpython-311-x86_64-linux-gnu.so": "for one version",
}
NOBODY = 65534


def made(folder: Path, machine: str, content: dict[str, str], version: str = "1.0") -> Path:
    """A zipapp of the files, in the folder, for one architecture and another that differs in one file."""
    for name in (machine, "vax"):
        (folder / "wheels" / name).mkdir(parents=True)
        with zipfile.ZipFile(folder / "wheels" / name / "one.whl", "w") as wheel:
            for path, text in {**content, "psutil.py": f"machine = {name!r}\n"}.items():
                wheel.writestr(path, text)
    command = [sys.executable, RELEASE / "make_zipapp.py", folder / "x.pyz", version, folder / "wheels"]
    subprocess.run(command, env={"SOURCE_DATE_EPOCH": "1790000000"}, check=True)
    return folder / "x.pyz"


@pytest.fixture
def zipapp(tmp_path) -> Path:
    return made(tmp_path, os.uname().machine, CONTENT)


def start(
    zipapp: Path, *before: str, python: str = sys.executable, **environment: str
) -> subprocess.CompletedProcess[str]:
    return ran(*before, python, "-I", zipapp, "a", "b c", env=environment)


def place_of(done: subprocess.CompletedProcess[str]) -> Path:
    """The folder from which the exporter ran."""
    assert (done.returncode, done.stderr) == (7, "")
    place, *arguments = done.stdout.split()
    assert arguments == ["a", "b", "c"]
    return Path(place).parents[1]


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The line of a zipapp that does not start."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line.removeprefix("roce-exporter: ")


def test_it_unpacks_once_and_only_what_this_machine_needs(zipapp, tmp_path) -> None:
    place = place_of(start(zipapp, XDG_CACHE_HOME=f"{tmp_path}/cache"))
    assert place.parent == tmp_path / "cache/roce-exporter"
    assert (place / "psutil.py").read_text() == f"machine = {os.uname().machine!r}\n"
    assert {path.name for path in place.iterdir()} - {"__pycache__"} == {
        "roce_exporter",
        "bcrypt.py",
        "psutil.py",
    }
    (place / "marked").touch()
    assert place_of(start(zipapp, XDG_CACHE_HOME=f"{tmp_path}/cache")) == place
    assert (place / "marked").exists()
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_another_content_gets_another_folder(zipapp, tmp_path) -> None:
    changed = {**CONTENT, "bcrypt.py": "changed = True\n"}
    other = made(tmp_path / "other", os.uname().machine, changed)
    places = {place_of(start(one, XDG_CACHE_HOME=f"{tmp_path}/cache")) for one in (zipapp, other)}
    assert len(places) == 2


def test_one_that_loses_the_race_uses_what_the_other_made(zipapp, tmp_path) -> None:
    module = module_of(RELEASE / "zipapp/unpack.py")
    place = tmp_path / "there"
    (place / "roce_exporter").mkdir(parents=True)
    with zipfile.ZipFile(zipapp) as archive:
        module.unpack(archive, os.uname().machine, place)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".new-")]


def test_without_a_cache_it_takes_the_home_and_then_the_temporary_folder(
    zipapp, tmp_path, monkeypatch
) -> None:
    (tmp_path / "home").mkdir()
    assert place_of(start(zipapp, HOME=f"{tmp_path}/home")).parent == tmp_path / "home/.cache/roce-exporter"
    module = module_of(RELEASE / "zipapp/unpack.py")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(module, "home_of_user", lambda: "/nonexistent")
    assert module.cache_folder() == tmp_path / f"roce-exporter-{os.geteuid()}"


@pytest.mark.parametrize("what", ["another owner", "a link", "writable by all", "a parent writable by all"])
def test_a_folder_that_others_could_change_is_refused(zipapp, tmp_path, what) -> None:
    folder = tmp_path / "cache/roce-exporter"
    folder.mkdir(parents=True)
    if what == "another owner":
        need_root()
        os.chown(folder, NOBODY, NOBODY)
        message = f"{folder} belongs to another user ({NOBODY}); "
    elif what == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
        message = f"{folder} is a symbolic link; "
    else:
        (folder if what == "writable by all" else folder.parent).chmod(0o777)
        message = f"other users can write to {folder}; "
    line = refusal(start(zipapp, XDG_CACHE_HOME=f"{tmp_path}/cache"))
    assert line == message + "set XDG_CACHE_HOME to a folder that this user can write to and others cannot"
    assert not list(folder.iterdir())


def test_a_read_only_file_system_is_one_line(zipapp, tmp_path) -> None:
    need_root()
    (tmp_path / "cache").mkdir()
    mount = f'mount -t tmpfs -o ro none {tmp_path}/cache && exec "$@"'
    environment = {"XDG_CACHE_HOME": f"{tmp_path}/cache", "PATH": os.environ["PATH"]}
    line = refusal(start(zipapp, "unshare", "--mount", "sh", "-c", mount, "sh", **environment))
    folder = tmp_path / "cache/roce-exporter"
    assert line.startswith(f"cannot unpack to {folder}: Read-only file system; set XDG_CACHE_HOME")


def test_a_library_that_does_not_load_is_one_line(tmp_path) -> None:
    broken = {**CONTENT, "bcrypt.py": "raise ImportError('_bcrypt.abi3.so: failed to map segment')\n"}
    zipapp = made(tmp_path, os.uname().machine, broken)
    line = refusal(start(zipapp, XDG_CACHE_HOME=f"{tmp_path}/cache"))
    assert "_bcrypt.abi3.so: failed to map segment; if " in line
    assert "noexec, set XDG_CACHE_HOME" in line


def test_another_architecture_is_one_line(tmp_path) -> None:
    zipapp = made(tmp_path, "pdp11", CONTENT)
    line = refusal(start(zipapp, XDG_CACHE_HOME=f"{tmp_path}/cache"))
    assert line == f"has libraries for pdp11 and vax, not for {os.uname().machine}; install it with pip"


def test_another_c_library_is_one_line(zipapp, monkeypatch) -> None:
    """Musl returns EINVAL for the name of glibc's version."""

    def confstr(name: str) -> str:
        raise OSError(22, "Invalid argument")

    module = module_of(RELEASE / "zipapp/unpack.py")
    monkeypatch.setattr(os, "confstr", confstr)
    with zipfile.ZipFile(zipapp) as archive, pytest.raises(module.UnfitError, match=r"GNU C library.*musl"):
        module.fitting(archive)


def test_an_old_python_is_one_line(zipapp) -> None:
    """The file itself has the syntax of the first versions of Python 3."""
    ast.parse((RELEASE / "zipapp/__main__.py").read_text(), feature_version=(3, 4))
    code = f"import sys, runpy; sys.version_info = (3, 9, 2); runpy.run_path({str(zipapp)!r}, run_name='__main__')"
    done = ran(sys.executable, "-I", "-c", code)
    assert refusal(done).startswith(f"needs Python 3.11 or newer; {sys.executable} is ")
