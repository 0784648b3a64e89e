"""A page in a browser, with all that it says and asks for; and texts that a page may show and never obey."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

NASTY = "</script><img/src=x/onerror=hit()>"
WORDS = (
    *("dog", "cat", NASTY, '"><img/src=x/onerror=hit()>', "<!--<script>", "{{7*7}}", "${hit()}", "javascript:hit()"),
    *("=1+1", "-2+3", "@hit", "]]>", "\"'onmouseover=hit()", "&lt;b&gt;"),
)
LABEL = "V<img/src=x/onerror=hit`1`>"  #: of a class of words
CAUSAL, RENAMED = "two", "=<svg onload=hit()>"  #: models of the first run; the second is renamed to this
THIRD, MASKED = "third", "masked"  #: models of the second run
RUN, OTHER = "<b onclick=hit()> '$(hit)", '"><svg onload=hit()>{{7*7}}'  #: folders
TITLE = f"A title {NASTY} \u2028 ${{hit()}}"
FILE = '"><img src=x onerror=hit()>.txt'  #: of the grammar


def grammar() -> str:
    """Rules whose words and labels are such texts."""
    nouns = " | ".join(f"'{word.replace(chr(39), chr(92) + chr(39))}' {1 / len(WORDS)}" for word in WORDS)
    others = (f"S -> NP {LABEL} 0.6 | NP VP 0.4", "NP -> D N 1", f"VP -> {LABEL} NP 1", "D -> 'the' 0.7 | 'a' 0.3")
    return "\n".join((*others, f"{LABEL} -> 'sees' 1", f"N -> {nouns}", ""))


class Opened:
    """The page as a reader has it; ``window.hits`` counts what was obeyed of the texts."""

    def __init__(self, browser: Any, file: Path, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.context.set_default_timeout(120_000)  # a busy machine is no finding
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.add_init_script("window.hits = 0; window.hit = () => { window.hits += 1; }")
        self.page.goto(file.as_uri())

    def texts(self, selector: str) -> list[str]:
        """What is shown of each element."""
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]
