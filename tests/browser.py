"""A headless Chromium without a network, for the tests of pages; tests are skipped where it isn't installed."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

LIGHT, DARK = "light", "dark"


def _program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"needs {names[0]}, which isn't installed (Debian: apt-get install chromium chromium-driver)")
    return found


@contextmanager
def chromium(width: int = 1400, height: int = 900) -> Iterator[Any]:
    """Start a browser that can reach no other machine, and end it."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, which comes with the extra test")
    options = webdriver.ChromeOptions()
    options.binary_location = _program("chromium", "chromium-browser", "google-chrome")
    driver = _program("chromedriver")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-component-update",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        resize(browser, width, height)
        yield browser
    finally:
        browser.quit()


def resize(browser: Any, width: int, height: int = 900) -> None:
    """Give the page a size, a phone's below 600 pixels, and wait until its handlers have run."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    # Events of a new size are sent with the next frame; at the second one, they have been.
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def wait_for(browser: Any, selector: str) -> list[Any]:
    """Return the elements of a selector, once there are any; an error after half a minute without."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, 30).until(lambda page: page.find_elements("css selector", selector))


def prefer(browser: Any, scheme: str) -> None:
    """Have the system prefer light or dark pages."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def requests(browser: Any) -> list[str]:
    """Return the addresses that pages asked for since this was last called."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


# The lowest contrast of text to what is behind it (WCAG 2), over all elements with text of their own that are shown.
CONTRAST = """
function channels(text) { return text.match(/[\\d.]+/g).map(Number); }
function luminance(c) {
  const [r, g, b] = c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(element) {
  for (let e = element; e; e = e.parentElement) {
    const c = channels(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c.slice(0, 3);
  }
  return [255, 255, 255];
}
const found = [...document.querySelectorAll("body *")].filter((e) =>
  !e.closest("svg, script, noscript, #network") && e.getClientRects().length
  && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
const ratios = found.map((e) => {
  const [a, b] = [luminance(channels(getComputedStyle(e).color).slice(0, 3)), luminance(behind(e))];
  const where = e.tagName + "." + e.className + " " + e.textContent.slice(0, 30);
  return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), where];
});
return ratios.sort((a, b) => a[0] - b[0])[0];
"""
