"""`kctl completion` prints the generated script, from the source tree and from an installation."""

import sys
from pathlib import Path

import pytest

from kctl.commands import completion
from tests.support.kctl import Kctl

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("shell", "name"), [("bash", "kctl.bash"), ("zsh", "_kctl"), ("fish", "kctl.fish")]
)
def test_script_is_the_generated_one(kctl: Kctl, shell: str, name: str) -> None:
    result = kctl("completion", shell)
    assert (result.exit_code, result.output) == (0, (ROOT / "completions" / name).read_text())


def test_installed_script_is_found_below_the_prefix(
    kctl: Kctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "share" / "kctl" / "completions"
    installed.mkdir(parents=True)
    (installed / "kctl.bash").write_text("# installed\n")
    monkeypatch.setattr(completion, "__file__", str(tmp_path / "lib/kctl/commands/completion.py"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert kctl("completion", "bash").output == "# installed\n"
    missing = kctl("completion", "fish")
    assert (missing.exit_code, "no completion script" in missing.stderr) == (1, True)
