"""The commands of docs/security.md work on a secure development broker; no secret is shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_commands_of_the_page_work(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("KCTL_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    end = "kctl dev down >&2\n"
    script = f"trap '{end.strip()}' EXIT\n" + "".join(blocks)
    # The files are checked while the cluster exists, and the secret at the end.
    marker = "kctl dev down --delete-data\n"
    assert script.endswith(marker)
    keep = 'cp -rp "$XDG_STATE_HOME" kept; echo "$SHOP_PASSWORD" > kept.password\n'
    script = script.removesuffix(marker) + keep + marker
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    security = tmp_path / "kept" / "kctl" / "dev" / "security"
    secret_files = [security / name for name in ("broker.pem", "broker.properties")]
    secret_files += [security / "client.properties"]
    secret_files += (security.parent / "broker-1").glob("server.properties")
    assert [oct(path.stat().st_mode & 0o777) for path in secret_files] == ["0o600"] * 4
    passwords = re.findall(r'password="([^"]+)"', "".join(map(Path.read_text, secret_files[1:])))
    assert len(set(passwords)) == 2
    shown = done.stdout + done.stderr + (security.parent / "broker-1" / "broker.log").read_text()
    for password in (*passwords, (tmp_path / "kept.password").read_text().strip()):
        assert password and password not in shown
    assert not (tmp_path / "state" / "kctl" / "dev" / "security").exists()
    assert "dev-secure" not in (tmp_path / "config" / "kctl" / "config.yaml").read_text()
