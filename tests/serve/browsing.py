"""The page in a browser, used as a person would: by pointer, by keyboard, by files that are dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, final

from serve.running import Running

VIEWS = ("who", "pair", "map", "uncertain", "audit", "threshold")
PATIENCE = 60.0  # seconds
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@final
class Page:
    """The page of a service.

    Args:
        driver: The browser.
        service: What serves it.
    """

    def __init__(self, driver: Any, service: Running) -> None:
        self.driver, self.service = driver, service

    def open(self, view: str = "who", key: str | None = None) -> None:
        """Open the link that a user is given, and a view.

        Args:
            view: Its name.
            key: Another key than that to write.
        """
        self.driver.get("about:blank")  # else only the hash changes
        self.driver.get(f"{self.service.address}/#key={self.service.write if key is None else key}")
        self.wait(lambda: self.find("summary").text)
        self.show(view)

    def show(self, view: str) -> None:
        """Click the tab of a view."""
        self.find(f"tab-{view}").click()
        self.wait(lambda: not self.css("[aria-busy]"))

    def css(self, selector: str) -> list[Any]:
        """The elements that a selector finds."""
        return list(self.driver.find_elements("css selector", selector))

    def find(self, name: str) -> Any:
        """The element that is named for tests."""
        return self.driver.find_element("css selector", f'[data-testid="{name}"]')

    def text(self, name: str) -> str:
        """What an element says, as it is shown."""
        return str(self.find(name).text)

    def say(self, words: str) -> Any:
        """Run a script."""
        return self.driver.execute_script(words)

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        """The name or id of the element with the focus."""
        return str(self.say("const e = document.activeElement; return e.dataset.testid || e.id || e.tagName"))

    def tab_to(self, name: str) -> None:
        """Press Tab until an element has the focus."""
        for _ in range(60):
            if self.focused() == name:
                return
            self.press("\ue004")
        raise AssertionError(f"{name} is not reached by Tab")

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Wait until something holds, and return it."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        waiting = WebDriverWait(self.driver, PATIENCE, 0.05, [StaleElementReferenceException])
        return waiting.until(lambda _: condition())

    def wait_for(self, name: str, words: str) -> str:
        """Wait until an element says some words, and return all it says."""
        return str(self.wait(lambda: (said := self.text(name)) and words in said and said))

    def choose(self, name: str, path: Path) -> None:
        """Choose a file, as the file chooser of the system gives it."""
        self.find(name).send_keys(str(path))

    def drop(self, selector: str, path: Path) -> None:
        """Drag a file over an element and drop it there."""
        place = self.css(selector)[0]
        self.say(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        box = self.driver.execute_script("return arguments[0].getBoundingClientRect().toJSON()", place)
        dragged = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        where = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "data": dragged}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": kind, **where})

    def resize(self, width: int, height: int) -> None:
        """Make the viewport so large."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, **features: str) -> None:
        """Set what the user prefers, such as prefers_color_scheme="dark"."""
        told = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": told})

    def complaints(self, refused: bool = False) -> list[str]:
        """What the console says since it was asked last; what the browser says of refused requests only if asked."""
        logged = self.driver.get_log("browser")
        return [one["message"] for one in logged if not refused or one["source"] != "network"]

    def violations(self, axe: str) -> list[str]:
        """What axe-core finds serious or critical."""
        self.say(axe)
        words = "const done = arguments[1]; axe.run(document, arguments[0]).then(done, (e) => done(String(e)))"
        found = self.driver.execute_async_script(words, RULES)
        return [
            f"{one['id']}: {node['html']} {node['any'][0]['message'] if node['any'] else ''}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]
