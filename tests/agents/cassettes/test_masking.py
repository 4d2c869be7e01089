"""Masking of secrets: what counts as one, which encodings are recognized, and split texts."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings, strategies as st

import cuggino
from cuggino.agents.cassettes.masking import MARK, Masker, is_secret_name, put, put_in_parts
from tests.agents.cassettes.secret_corpus import NEGATIVES, POSITIVES, WORDS
from tests.growth import is_linear
from tests.vectors import each

KEY_BLOCK = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAB\nAAAABG5vbmU\n"
    "-----END OPENSSH PRIVATE KEY-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"


def masked(text: str, env: dict[str, str] | None = None) -> str:
    return put(text, Masker(env or {}).spans(text))


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-" + "aB3_" * 10,
        "sk-proj-" + "x1" * 20,
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "1A_b" * 10,
        "glpat-" + "a1-_" * 6,
        "AKIA" + "ABCD1234" * 2,
        "AIza" + "Sy-_a" * 7,
        "xoxb-" + "123-abc-" * 3,
        "sk_live_" + "a1b2" * 6,
        "npm_" + "a1B2" * 9,
        "hf_" + "aBcD" * 9,
        JWT,
        KEY_BLOCK,
    ],
    ids=lambda secret: secret[:10],
)
def test_known_formats(secret: str) -> None:
    """A secret in a known format is masked completely, and the surrounding text is kept."""
    assert "before ⟦" == masked(f"before {secret} after")[:8]
    assert masked(f"before {secret} after").endswith("⟧ after")
    assert secret not in masked(f"({secret} {secret})")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://app:s3cr3t@db:5432/x", "s3cr3t"),
        ("https://:hunter2@example.org", "hunter2"),
        ("https://hooks.slack.com/services/T0/B0/" + "aZ9" * 8, "aZ9" * 8),
    ],
)
def test_secrets_recognized_by_context(text: str, secret: str) -> None:
    """A secret recognized by its context is masked, but the context is not."""
    done = masked(text)
    assert secret not in done
    assert text[:8] == done[:8]
    assert 1 == len(MARK.findall(done))


@pytest.mark.parametrize(
    "text",
    [
        "the task-of-the-day-is-a-long-one and risk-assessment-of-everything",
        "password = read_password(prompt)",
        "git diff 0123456789abcdef0123456789abcdef01234567..HEAD",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "https://example.org:8080/a@b",
        "headers = {'Authorization': f'Bearer {token}'}",
        "toolu_01A09q90qw90lq917835lq9",
    ],
)
def test_ordinary_texts_are_not_masked(text: str) -> None:
    """Code, hashes, ids and plain URLs are kept."""
    assert text == masked(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("GITHUB_TOKEN", True),
        ("npm_config__authToken", True),
        ("DB_PASSWORD", True),
        ("ANTHROPIC_API_KEY", True),
        ("KEY", True),
        ("MAX_THINKING_TOKENS", False),
        ("PWD", False),
        ("KEYBOARD", False),
        ("AUTHOR", False),
        ("PATH", False),
    ],
)
def test_names_of_secret_variables(name: str, expected: bool) -> None:
    """The name of a variable decides whether its value is a secret."""
    assert expected is is_secret_name(name)


def test_values_of_variables(tmp_path: Path) -> None:
    """The value of a secret variable is masked by name, unless it is a path, a flag or a number."""
    env = {
        "APP_SECRET": "open sesame",
        "KEY": "12345",
        "USE_AUTH": "true",
        "CREDENTIALS": str(tmp_path),
        "HOMEPAGE": "home-page",
    }
    assert "say ⟦masked APP_SECRET⟧!" == masked("say open sesame!", env)
    text = f"12345 true {tmp_path} home-page"
    assert text == masked(text, env)


def test_encodings_of_a_value() -> None:
    """A value is recognized as encoded in JSON, URLs, shell words and base64."""
    secret = "pa\"ss\nwörd it's"
    env = {"PASSWORD": secret}
    forms = [
        json.dumps({"a": secret}),
        json.dumps({"a": secret}, ensure_ascii=False),
        f"https://example.org/?q={quote(secret)}",
        base64.b64encode(secret.encode()).decode(),
    ]
    for form in forms:
        assert 1 == len(MARK.findall(masked(form, env))), form


def test_bytes() -> None:
    """A secret in bytes is recognized in several encodings."""
    masker = Masker({"TOKEN": "value-of-the-token"})
    assert masker.is_in(b"\0\1value-of-the-token\2")
    assert masker.is_in("value-of-the-token".encode("utf-16"))
    assert masker.is_in(b"\xffghp_" + b"a1B2" * 9)
    assert not masker.is_in(b"\0\1\2 value of the token")


@pytest.mark.real_agent
@pytest.mark.parametrize("piece", ["a", "eyJ-", "a://", "sk-", "Bearer ", "ghp_", "/", "-----B"])
def test_long_texts(piece: str) -> None:
    """The CPU time of masking is linear in the length of the text."""

    def work(size: int) -> None:
        masked(piece * (size // len(piece)), {"A_TOKEN": "some-other-value"})

    assert is_linear(work, small=25_000, large=200_000)


def test_secrets_of_a_session_environment() -> None:
    """Secrets from a session's environment are masked like those of the process."""
    masker = Masker({"A_TOKEN": "first-value"}).with_env({"B_TOKEN": "other-value"})
    text = "first-value other-value"
    assert "⟦masked A_TOKEN⟧ ⟦masked B_TOKEN⟧" == put(text, masker.spans(text))


SECRETS = st.sampled_from(
    ["value-of-a-variable", "ghp_" + "a1B2" * 9, JWT, KEY_BLOCK, "sk-ant-" + "x_1-" * 8]
)


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.tuples(st.text(max_size=20), SECRETS), min_size=1, max_size=4), st.data())
def test_split_texts_never_leak_a_secret(
    pieces: list[tuple[str, str]], data: st.DataObject
) -> None:
    """However a text is split, neither the parts nor their concatenation contain a secret."""
    text = "".join(f"{before} {secret} " for before, secret in pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    masker = Masker({"SOME_TOKEN": "value-of-a-variable"})
    done = put_in_parts(parts, masker.spans(text))
    assert len(parts) == len(done)
    assert put(text, masker.spans(text)) == "".join(done)
    for _, secret in pieces:
        assert secret not in "".join(done)


@settings(max_examples=2 * settings().max_examples)
@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_parts_without_secrets_are_unchanged(text: str, cuts: list[int]) -> None:
    """Parts without secrets are returned unchanged."""
    borders = sorted(min(cut, len(text)) for cut in cuts)
    parts = [text[a:b] for a, b in zip([0, *borders], [*borders, len(text)], strict=True)]
    assert parts == put_in_parts(parts, [])


TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "text",
    [
        "one\\n" + TOKEN,
        "a%3D" + TOKEN,
        "\\u003d" + TOKEN,
        "\x1b[32m" + TOKEN + "\x1b[0m",
        "\x1b[01;31m\x1b[K" + TOKEN,
    ],
)
def test_a_word_after_an_escape(text: str) -> None:
    """The last letter of an escape sequence does not belong to the following word."""
    assert TOKEN not in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        'f"postgresql://{user}:{password}@{host}/app"',
        "postgres://app:${DB_PASSWORD}@db/app",
        '"mysql://%s:%s@%s"',
        "http://localhost:5173?mail=me@example.com",
        'assert "-----BEGIN RSA PRIVATE KEY-----" not in text\nmore()\n',
    ],
)
def test_code_is_not_masked(text: str) -> None:
    """URL templates and prose about keys contain no secret."""
    assert text == masked(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_formats_in_bytes(encoding: str) -> None:
    """A known format is recognized in every supported encoding."""
    assert Masker({}).is_in(b"\xff\x00" + f"x {TOKEN} y".encode(encoding))


@each("text, secret", POSITIVES)
def test_formats_of_secrets(text: str, secret: str) -> None:
    """The secret is masked, and something of the text around it stays."""
    done = masked(text)
    assert secret not in done
    assert 1 <= len(MARK.findall(done))
    assert secret not in masked(f"{text}\n")


@pytest.mark.parametrize("text", WORDS)
def test_words_beside_a_value(text: str) -> None:
    """English words beside a value make it no secret; a variable that is known does."""
    assert text == masked(text)
    value = max(re.findall(r"[^\s\"'=;]{6,}", text), key=len)
    assert "⟦masked API_KEY⟧" in masked(text, {"API_KEY": value})


def test_everyday_lines() -> None:
    """Nothing is masked in lines of code, logs and documents."""
    wrong = [line for line in NEGATIVES if masked(line) != line]
    assert len(NEGATIVES) >= 250
    assert [] == wrong


@pytest.mark.real_agent
def test_our_own_code_is_hardly_masked() -> None:
    """In the package itself, which has many names such as `token`, nothing is masked."""
    root = Path(cuggino.__file__).parent
    wrong = {
        (path.name, text[span.start : span.end])
        for path in root.rglob("*.py")
        for text in [path.read_text(encoding="utf-8")]
        for span in Masker({}).spans(text)
    }
    assert set() == wrong


def test_formats_are_found_in_a_large_text() -> None:
    """Every secret of a text with all of them is masked, among everyday lines."""
    secrets = [secret for _, secret in POSITIVES]
    lines = [line for line in NEGATIVES if not any(secret in line for secret in secrets)]
    pieces = [
        piece for pair in zip(POSITIVES, lines, strict=False) for piece in (pair[0][0], pair[1])
    ]
    done = masked("\n\n".join(pieces))
    for secret in secrets:
        assert secret not in done
