"""`python -m tests.documents [picture|page]`."""

from __future__ import annotations

import sys

from tests.documents import DOCUMENTS, ROOT
from tests.documents.picture import PICTURE, picture
from tests.documents.recording import record_demo


def main(words: list[str]) -> int:
    """Write the pages, or one of the pictures."""
    match words:
        case []:
            written = {path: make() for path, make in DOCUMENTS.items()}
        case ["picture"]:
            written = {PICTURE: picture(record_demo())}
        case ["page"]:
            from tests.documents.page import PAGE, make_page

            print(f"{PAGE}: {(ROOT / PAGE).write_bytes(make_page())} bytes")
            return 0
        case _:
            print("usage: python -m tests.documents [picture|page]", file=sys.stderr)
            return 2
    for path, text in written.items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"{path}: {len(text.encode())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
