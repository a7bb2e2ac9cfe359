"""The page of an exploration, by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emuredis.lab import LabClient, exactly_one_place, explore

SCRIPT = (
    "local job = redis.call('RPOP', KEYS[1]) if job then redis.call('LPUSH', KEYS[2], job) end return job"
)


async def two_steps(client: LabClient) -> None:
    job = await client.rpop("queue")
    if job is not None:
        await client.lpush("busy", job)


async def one_script(client: LabClient) -> None:
    await client.eval(SCRIPT, ["queue", "busy"])


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    found = explore(
        {"worker <1>": two_steps, "scripted": one_script}, setup=lambda client: client.call("RPUSH", "queue", "job"),
        crashes=1, check=exactly_one_place("job", "queue", "busy"),
    )  # fmt: skip
    browser.get(found.save(tmp_path / "page.html", "Two steps </script> or one").as_uri())
    return browser


def text(page: Any, css: str) -> str:
    found: str = page.find_element("css selector", css).text
    return found


def test_it_says_what_is_wrong(page: Any) -> None:
    assert text(page, "h1") == "Two steps </script> or one"
    assert text(page, "#verdict") == "Broken: job is lost: it is in none of queue, busy"
    assert [cell.text for cell in page.find_elements("css selector", "#lanes thead th")] == [
        "step", "worker <1>", "scripted",
    ]  # fmt: skip
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_by_mouse(page: Any) -> None:
    assert text(page, "#where") == "0 of 3"
    assert "queue" in text(page, "#keys")
    for _ in range(2):
        page.find_element("id", "on").click()
    assert text(page, "#where") == "2 of 3"
    assert text(page, "#lanes tr.now .mark") == "✖ crash"
    assert "nothing" in text(page, "#keys")
    page.find_element("id", "back").click()
    assert text(page, "#where") == "1 of 3"
    assert page.find_element("css selector", "#keys tr.gone").text.startswith("queue")
    page.find_elements("css selector", "#lanes tbody th")[2].click()
    assert text(page, "#where") == "3 of 3"
    block = page.find_element("css selector", "details.script")
    block.find_element("css selector", "summary").click()
    assert "RPOP queue" in block.text
    page.find_elements("css selector", "#runs button")[1].click()
    assert text(page, "#verdict").startswith("Fine:")


def test_by_keyboard(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    body = page.find_element("css selector", "body")
    body.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert text(page, "#where") == "2 of 3"
    body.send_keys(Keys.ARROW_LEFT)
    assert text(page, "#where") == "1 of 3"
    body.send_keys(Keys.END)
    assert text(page, "#where") == "3 of 3"
    body.send_keys(Keys.HOME)
    assert text(page, "#where") == "0 of 3"
    reached = []
    for _ in range(12):
        page.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(
            page.switch_to.active_element.get_attribute("id") or page.switch_to.active_element.tag_name
        )
    assert {"back", "on", "at", "filter", "tr", "button"} <= set(reached)


def test_filter_and_address(page: Any) -> None:
    page.find_element("id", "filter").send_keys("busy")
    shown = [
        row.get_attribute("data-step")
        for row in page.find_elements("css selector", "#lanes tbody tr:not(.other)")
    ]
    assert shown == ["3"]
    page.find_element("id", "on").click()
    address = page.current_url
    assert address.endswith("#run=0&step=1")
    page.get("about:blank")
    page.get(address)
    assert text(page, "#where") == "1 of 3"


def test_it_needs_no_network_and_is_readable_as_text(page: Any) -> None:
    source = page.page_source
    assert "http://" not in source.replace("http://www.w3.org", "")
    assert "https://" not in source
    assert page.find_element("id", "spoken").get_attribute("aria-live") == "polite"
    assert page.find_element("css selector", "html").get_attribute("lang") == "en"
