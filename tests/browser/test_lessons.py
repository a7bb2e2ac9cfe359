"""Every lesson can be played to its end by mouse alone and by keyboard alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from emuredis.lab.lessons import LESSONS, Lesson
from emuredis.lab.lessons.web import serve


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    found: list[Any] = []
    there = threading.Event()
    thread = threading.Thread(
        target=serve, args=(0, lambda server: (found.append(server), there.set())), daemon=True
    )
    thread.start()
    assert there.wait(10)
    yield f"http://127.0.0.1:{found[0].server_address[1]}/"
    found[0].shutdown()
    thread.join()


class Page:
    """The lessons' page in a browser."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser = browser
        self.address = address

    def open(self, fragment: str) -> None:
        self.browser.get("about:blank")
        self.browser.get(self.address + fragment)
        self.wait(lambda: self.browser.find_element("css selector", "body").get_attribute("data-shown"))

    def wait(self, done: Any) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, 20, poll_frequency=0.01).until(lambda _: done())

    def find(self, css: str) -> Any:
        return self.browser.find_element("css selector", css)

    def shown(self) -> str:
        return str(self.find("body").get_attribute("data-shown"))

    def after(self, act: Any) -> None:
        """Do something that leads to another state, and wait until it is shown."""
        before = self.shown()
        act()
        self.wait(lambda: self.shown() != before)


@pytest.fixture
def page(browser: Any, address: str) -> Page:
    return Page(browser, address)


def worst(lesson: Lesson) -> list[str]:
    found = lesson.broken.explore().counterexample
    assert found is not None
    return found.choices


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.number}")
def test_by_mouse_alone(page: Page, lesson: Lesson) -> None:
    page.open("")
    if lesson.number > 1:
        page.after(page.find(f"nav a[data-number='{lesson.number}']").click)
    assert page.find("#title").text == f"{lesson.number}. {lesson.title}"
    for choice in worst(lesson):
        page.after(page.find(f"#choices button[data-choice='{choice}']").click)
    assert page.find("#verdict").get_attribute("class") == "verdict bad"
    page.after(page.find("#right").click)
    while page.browser.find_elements("css selector", "#choices button"):
        page.after(page.find("#choices button").click)
    assert page.find("#verdict").get_attribute("class") == "verdict good"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.number}")
def test_by_keyboard_alone(page: Page, lesson: Lesson) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open(f"#lesson={lesson.number}")

    def press(key: str) -> None:
        page.browser.switch_to.active_element.send_keys(key)

    for choice in worst(lesson):
        buttons = page.browser.find_elements("css selector", "#choices button")
        at = [button.get_attribute("data-choice") for button in buttons].index(choice)
        page.after(lambda at=at: press(str(at + 1)))
    assert page.find("#verdict").get_attribute("class") == "verdict bad"
    page.after(lambda: press("u"))
    assert page.find("#verdict").get_attribute("class") == "verdict"
    page.after(lambda: press("g"))
    while page.browser.find_elements("css selector", "#choices button"):
        page.after(lambda: press("1"))
    assert page.find("#verdict").get_attribute("class") == "verdict good"
    press("e")
    page.wait(lambda: "none broke it" in page.find("#explored").text)
    page.find("#title").send_keys(Keys.TAB)


def test_an_address_is_a_state(page: Page) -> None:
    page.open("#lesson=1&program=broken&choices=aa!b")
    assert page.find("#verdict").text == "job:7 is lost: it is in none of queue, busy"
    assert len(page.browser.find_elements("css selector", "#lanes tbody tr")) == 3
    page.open("#lesson=77&program=nonsense&choices=%22")
    assert page.find("#title").text == "1. Two steps or one"
    severe = [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [entry for entry in severe if "400" not in entry["message"]] == []
