"""docs/assets/vscode.png: the extension in a real VS Code, about the script that `make demo` takes.

`python docs/vscode_picture.py CODE-SERVER VSIX` takes it anew. It needs code-server (VS Code as a page, from npm), Chromium with its
driver, selenium, and the extra `server`; the extension comes from `npm run package` in editors/vscode. By hand, since no
machine of ours has all of these: take it when what the editor shows has changed.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))
import example_run

TARGET: Final = Path(__file__).parent / "assets/vscode.png"
_LINE: Final = "total_loss += "
_SETTINGS: Final = {
    "gpulint.interpreter": [sys.executable],
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "update.mode": "none",
}


def main(server: str, extension: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        project = top / "project"
        project.mkdir()
        program = example_run.script()
        (project / "train.py").write_text(program, encoding="utf-8")
        row = next(row for row, line in enumerate(program.splitlines(), 1) if _LINE in line)
        places = ["--user-data-dir", str(top / "data"), "--extensions-dir", str(top / "extensions")]
        settings = top / "data/User/settings.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(_SETTINGS), encoding="utf-8")
        subprocess.run([server, *places, "--install-extension", extension], check=True)
        port = _free_port()
        address = f"127.0.0.1:{port}"
        command = [server, *places, "--auth", "none", "--bind-addr", address, "--disable-telemetry"]
        with subprocess.Popen([*command, "--disable-update-check"]) as running:
            try:
                _wait_for(port)
                _take(f"http://{address}/?folder={project}", row)
            finally:
                running.terminate()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(120):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise RuntimeError("code-server does not answer")


def _take(address: str, row: int) -> None:
    """Open the file at a row, have it explained, show the list of problems, and keep what is seen."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    browser = _browser()

    def typed(key: str, text: str) -> None:
        ActionChains(browser).send_keys(key).perform()
        time.sleep(2)
        ActionChains(browser).send_keys(text).perform()
        time.sleep(3)
        ActionChains(browser).send_keys(Keys.ENTER).perform()
        time.sleep(3)

    def there(path: str) -> Any:
        return WebDriverWait(browser, 120).until(lambda driver: driver.find_elements(By.XPATH, path))[0]

    try:
        browser.get(address)
        ActionChains(browser).double_click(there("//span[contains(text(), 'train.py')]")).perform()
        there("//*[contains(@class, 'view-line')]")
        time.sleep(3)
        ActionChains(browser).key_down(Keys.CONTROL).send_keys("g").key_up(Keys.CONTROL).perform()
        time.sleep(2)
        ActionChains(browser).send_keys(f"{row}:10", Keys.ENTER).perform()
        there("//*[contains(@class, 'squiggly-error')]")  # only lines that are in sight are marked
        typed(Keys.F1, "Problems: Focus on Problems View")
        typed(Keys.F1, "View: Focus Active Editor Group")
        typed(Keys.F1, "gpulint: Explain")
        time.sleep(5)
        browser.save_screenshot(str(TARGET))
    finally:
        browser.quit()


def _browser() -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for option in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1400,900",
    ):
        options.add_argument(option)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


if __name__ == "__main__":
    main(*sys.argv[1:])
