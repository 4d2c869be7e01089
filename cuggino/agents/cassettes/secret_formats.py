"""Formats of secrets: tokens that are unmistakable, and values that their names give away.

A format names words of which one must be in the text (in lower case), so that its pattern rarely
has to run. No pattern is slow on any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_BEFORE = (
    r"(?:(?<![A-Za-z0-9_])"
    # Letters of an escape: in a string, a URL, or terminal colors.
    r"|(?<=\\[nrtfvb])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=\x1b\[[mK])|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm)|(?<=;\dm)|(?<=;\d\dm))"
)
_QUOTE = r"\\{0,3}[\"'`]"
_ANY_QUOTE = r"(?:\\{0,3}[\"'`])?"


class Format(NamedTuple):
    """A pattern; its group, if it has one, is the secret."""

    label: str
    words: tuple[str, ...]
    """Every matching text contains one of these words; lowercase, unless `exact`."""
    pattern: re.Pattern[str]
    is_secret: Callable[[re.Match[str]], bool] = lambda _match: True
    """Decides whether a match is a secret."""
    exact: bool = False
    back: int | None = None
    """Maximum distance from the start of a match to its word; None means anywhere in the text."""
    after: re.Pattern[str] = re.compile("")
    """Pattern that the text must match where a word begins, if `back` is set."""


def found_formats(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the kind of each secret in the text."""
    lowered = text.lower()
    if len(lowered) != len(text):  # of a few letters, such as a dotted capital I
        lowered = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    for each in FORMATS:
        matches = _matches(each, text, text if each.exact else lowered)
        for match in matches:
            if each.is_secret(match):
                yield *match.span(_group_of(match)), each.label


def _matches(each: Format, text: str, searched: str) -> Iterator[re.Match[str]]:
    if each.back is None:
        if any(word in searched for word in each.words):
            yield from each.pattern.finditer(text)
        return
    for word in each.words:
        at = searched.find(word)
        while at >= 0:
            end = at + len(word)
            if each.after.match(searched, at):
                for begin in range(max(at - each.back, 0), at + 1):
                    match = each.pattern.match(text, begin)
                    if match and (not each.after.pattern or match.end(1) > at):
                        yield match
                        end = max(end, match.end() if each.exact else match.end(1))
                        break
            at = searched.find(word, end)


def _group_of(match: re.Match[str]) -> int | str:
    """Return the group with the secret; 0, the whole match, without one."""
    if "quoted" in match.re.groupindex:
        return "bare" if match["quoted"] is None else "quoted"
    return next((n for n in range(1, match.re.groups + 1) if match[n]), 0)


_PLACEHOLDER = re.compile(
    r"[xX]+|(.)\1*|(?:change|replace)[-_]?(?:me|this|it).*|(?:your|my|some|the|a|an|any)[-_ ].*"
    r"|(?:your|my)[A-Z].*|.*(?:example|placeholder|redacted|masked|hidden|dummy|sample).*"
    r"|null|none|nil|true|false|undefined|void|string|required|optional|missing|invalid|expired"
    r"|default|disabled|enabled|unknown|hashed|encrypted|password|passwd|secrets?|tokens?"
    r"|credentials?|bearer|basic|digest|u?int\d+|float\d+|varchar\d*|bytes\d+|utf-?\d+|sha-?\d+"
    r"|abc123|foo(?:bar)?\d*|bar\d*|test|todo|fixme|omitted|sensitive|\d{1,9}|\d+(?:\.\d+)+\w*",
    re.IGNORECASE | re.DOTALL,
)
_REFERENCE = re.compile(
    r"[$%<{\[(*=!&#@]|\.{1,2}/|~|/(?:[\w.-]+/|[a-z.]+$)|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://"
    r"|(?:process|import\.meta|os|env|self|this|config|settings|options|args|params|request|req"
    r"|ctx|context|secrets|vault|data|user|vars|var|local|module|cls|props|state|event|opts)[.\[]"
    r"|(?:f|r|b|rf|fr)?[\"']|[^\n]{0,400}(?:\{\w*[!:}]|\$\{|\{\{|\$\(|%\(|%s|<[a-z_ -]+>)"
    r"|[^\n]{0,80}(?i:abcdefghij)",
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_]*(?:[._:-]+[A-Za-z_]+)*[0-9]?")
_NOT_SECRETS = re.compile(
    r"(?:count|counts|limit|limits|usage|used|type|types|name|names|url|uri|path|file|files|dir"
    r"|length|len|size|expires?|expiry|expiration|expiresin|ttl|timeout|algorithm|alg|header"
    r"|field|endpoint|issuer|kind|policy|hint|label|regex|pattern|min|max|budget|index|position"
    r"|class|id|ids|env|var|manager|provider|service|store|reset|prompt|input|list|map|version"
    r"|format|prefix|suffix|strategy|rules?|strength|required|enabled|ref|arn|at|ms|seconds|total"
    r"|encoding|charset|codec|s|word|text|kinds|stream|izer|ize|ized|ization)",
    re.IGNORECASE,
)
"""Last part of a name for a fact about a secret, such as its length."""
_NOT_KEYS = re.compile(
    r"public|primary|foreign|cache|sort|partition|index|shortcut|i18n|translation|message|group"
    r"|registry|hot|map|object|lookup|unique|composite|next|page|continuation|cancel|sync|design"
    r"|syntax|sub_?token|tokens",
    re.IGNORECASE,
)
"""Words in names of keys or tokens that are not secret."""
_PASSWORD = re.compile(r"passw|passphrase|pwd|secret|(?:^|_)pass$", re.IGNORECASE)
"""Names of secrets that a person may have chosen, and that may therefore look like words."""
_WORDS_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LEAST = 6
_JUDGED = 100
"""Characters of a value that decide whether it is a secret."""


def _is_literal(value: str) -> bool:
    """Return whether the value may be a secret: no placeholder, reference or path."""
    return (
        len(value) >= _LEAST
        and not _PLACEHOLDER.fullmatch(value)
        and not _REFERENCE.match(value)
        and any(letter.isalnum() for letter in value)
    )


def _is_random(value: str) -> bool:
    """Return whether the value looks random, rather than like a word or an identifier."""
    if _IDENTIFIER.fullmatch(value) and not _is_mixed(value):
        return False
    return any(c.isdigit() for c in value) or any(c in "!@#^~" for c in value) or _is_mixed(value)


def _is_mixed(value: str) -> bool:
    """Return whether upper and lower case alternate too often for a name."""
    return len(re.findall(r"[a-z][A-Z]", value)) > 3


def _is_assigned(match: re.Match[str]) -> bool:
    """Decide about `name = value` by the shape of both."""
    text, start = match.string, match.start()
    begin = start
    while begin and start - begin < 60 and (text[begin - 1].isalnum() or text[begin - 1] in "_-."):
        begin -= 1
    name = text[begin : match.end("name")]
    quoted, bare = match["quoted"], match["bare"]
    value = (quoted or bare)[:_JUDGED]
    parts = _WORDS_OF_NAME.findall(name)
    if not parts or _NOT_SECRETS.fullmatch(parts[-1]) or _NOT_KEYS.search(name):
        return False
    is_password = _PASSWORD.search(name) is not None
    if is_password and value.isdigit() and match["separator"] == "=":
        return name.upper() == name
    if not _is_literal(value):
        return False
    if match["separator"] == ":" and begin and text[begin - 1] == ":":
        return False  # a part of a name, as in `arn:aws:...`
    after = text[match.end() : match.end() + 1]
    separator = match["separator"]
    is_variable = name.upper() == name and "=" in separator and separator.strip() == separator
    if not is_variable and match["name"].lower() in ("pat", "pw"):
        return False  # of code, rather a pattern
    if is_variable and after not in ("(", "["):
        return not (_IDENTIFIER.fullmatch(value) and ("." in value or "::" in value))
    has_digit = any(letter.isdigit() for letter in value)
    if quoted is not None:
        return " " not in value and (_is_random(value) or (is_password and has_digit))
    is_line = separator.strip() == ":" and after in ("", "\n", "\r")  # as in YAML
    if is_password and (is_line or (separator == "=" and after not in (",", ")", "(", "["))):
        return has_digit and not (value.isidentifier() and "_" in value)
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", value):
        return False
    if after in ("(", "[", "{") or (after in (",", ")") and _IDENTIFIER.fullmatch(value)):
        return False
    if "=" in separator and separator != separator.strip() and name == name.lower():
        # As in code, where a bare value is a variable.
        return _is_random(value) and not value.isidentifier()
    return _is_random(value) and not (value.isidentifier() and "_" in value.strip("_"))


def _is_parameter(match: re.Match[str]) -> bool:
    value = match[1][:_JUDGED]
    return _is_literal(value) and _is_random(value)


def _is_given(match: re.Match[str]) -> bool:
    value = next(group for group in match.groups() if group)[:_JUDGED]
    return _is_literal(value) and not value.startswith("-")


def _is_password_of_user(match: re.Match[str]) -> bool:
    return _is_literal(match[1]) or (len(match[1]) >= 4 and not _REFERENCE.match(match[1]))


_SECRET_WORDS = (
    r"passw(?:or)?d|passphrase|passcode|passwort|secret|token(?!s|iz)|credentials?"
    r"|(?<![A-Za-z])pwd|(?<=[a-z])Pwd|(?<=_)(?:pass|PASS|pat|PAT|pw|PW)(?![A-Za-z])"
    r"|(?<![A-Za-z])PASS(?![A-Za-z])|(?<=[\"'])pass(?=\\?[\"'])"
    r"|(?:api|access|private|secret|signing|encryption|auth|account|shared|master|license|ssh"
    r"|deploy|service|storage|subscription|session|app|client|admin|bot|preshared|webhook|hmac"
    r"|consumer|security|role|anon)[_-]?key(?![a-z])"
    r"|(?<=[A-Z]_)KEY(?![A-Z])|_auth(?![a-z])|jwt(?![a-z])|\bsig(?![a-z])|client-key-data"
)
_ASSIGNED = (
    rf"(?P<name>(?i:{_SECRET_WORDS})[\w-]{{0,40}}){_ANY_QUOTE}\]?"
    # With the type of a variable.
    r"(?P<separator>[ \t]{0,8}(?::[ \t]?[A-Za-z_][\w.]{0,30}[ \t]{0,2}(?==))?"
    r"(?:=>|:=|\?=|[:=])(?!=)[ \t]{0,8})"
    rf"(?:[fbru]{{0,2}}(?P<mark>{_QUOTE})(?P<quoted>(?:(?!(?P=mark))[^\n]){{6,4000}}?)(?P=mark)"
    r"|(?P<bare>[^\s\"'`,;&|<>(){}\[\]\\]{6,4000}))"
)
_FLAG = r"-(?<![\w-]-)-?[a-z-]{0,30}"

_ASSIGN_WORDS = (
    *("pass", "pwd", "secret", "token", "credential", "key", "pat", "pw", "_auth", "jwt", "sig"),
)
_SIMPLE: tuple[tuple[str, str, str], ...] = (
    ("api key", "sk-", r"sk-[A-Za-z0-9_-]{16,}"),
    ("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    (
        "gitlab token",
        "glpat- gldt- glrt- glcbt- glptt- glsoat- glft- glimt- glagent- gloas-",
        r"gl(?:pat|dt|rt|cbt|ptt|soat|ft|imt|agent|oas)-[A-Za-z0-9_-]{16,}",
    ),
    ("atlassian token", "ATBB ATCTT3 ATATT3", r"AT(?:BB|CTT3|ATT3)[A-Za-z0-9_=-]{24,}"),
    ("aws key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ("google key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    ("google token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("google token", "1//0", r"1//0[A-Za-z0-9_-]{30,}"),
    ("google secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("slack token", "xox xapp-", r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),
    ("stripe key", "k_live_ k_test_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("npm token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi token", "pypi-", r"pypi-[A-Za-z0-9_-]{40,}"),
    ("rubygems token", "rubygems_", r"rubygems_[a-f0-9]{40,}"),
    ("nuget key", "oy2", r"oy2[a-z0-9]{43}(?![a-z0-9])"),
    ("hugging face token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    ("sendgrid key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("mailgun key", "key-", r"key-[a-f0-9]{32}(?![a-f0-9])"),
    ("mailchimp key", "-us", r"[a-f0-9]{32}-us\d{1,2}(?!\d)"),
    ("twilio key", "SK", r"SK[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("digitalocean token", "_v1_", r"do[opr]_v1_[a-f0-9]{40,}"),
    ("shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    ("square token", "sq0", r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}"),
    ("telegram token", ":AA", r"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    ("linear key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("notion key", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    ("databricks token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?(?![a-f0-9])"),
    (
        "doppler token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{20,}",
    ),
    ("vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("planetscale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9._-]{32,}"),
    ("supabase token", "sbp_ sb_secret_", r"sb(?:p|_secret)_[A-Za-z0-9_-]{30,}"),
    ("replicate token", "r8_", r"r8_[A-Za-z0-9]{37}"),
    ("perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    ("fireworks key", "fw_", r"fw_[A-Za-z0-9]{22,}"),
    ("terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    ("grafana token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{30,}"),
    ("new relic key", "NRA", r"NRA[KAL]-[A-Z0-9]{27}"),
    ("sentry token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    ("postman key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("figma token", "figd_", r"figd_[A-Za-z0-9_-]{36,}"),
    ("airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("facebook token", "EAA", r"EAA[A-Za-z0-9]{60,}"),
    ("azure secret", "8Q~", r"[A-Za-z0-9_.~-]{3}8Q~[A-Za-z0-9_.~-]{31,34}"),
    ("flyio token", "fm1_ fm2_ fo1_", r"(?:fm[12]|fo1)_[A-Za-z0-9+/=_-]{40,}"),
    (
        "provider key",
        "gsk_ dckr_pat_ dckr_oat_ whsec_ mdb_sa_sk_ tskey- CFPAT- pul- tvly- xai- AGE-SECRET-KEY-1",
        r"(?:gsk_|dckr_(?:pat|oat)_|whsec_|mdb_sa_sk_|tskey-[a-z]+-|CFPAT-|pul-|tvly-|xai-"
        r"|AGE-SECRET-KEY-1)[A-Za-z0-9_-]{20,}",
    ),
    ("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]*"),
    (
        "jwt",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{0,2000}(?:\.[A-Za-z0-9_-]{8,4000}){3}",
    ),
)
_WITHIN = {
    "stripe key": 2,
    "mailchimp key": 32,
    "digitalocean token": 3,
    "telegram token": 10,
    "terraform token": 14,
    "azure secret": 3,
}
"""Offset of the word within a token, if it is not at the start."""
_IN_CONTEXT: tuple[tuple[str, str, str], ...] = (
    (
        "private key",
        "private key",
        # Without a key after it, it is only text about keys.
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?=.{0,300}?[A-Za-z0-9+/]{40}).*?"
        r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    ("private key", "private-lines", r"Private-Lines: \d+\r?\n((?:[A-Za-z0-9+/=]+\r?\n)+)"),
    ("private key", '"d"', r"\"kty\".{0,2000}?\"d\"\s*:\s*\"([A-Za-z0-9_-]{20,})\""),
    ("private key", '"d"', r"\"d\"\s*:\s*\"([A-Za-z0-9_-]{20,})\"(?=.{0,2000}?\"kty\")"),
    (
        "aws secret",
        "access",
        r"(?i:(?:aws_?)?secret_?access_?key)\\?[\"']?\s*[:=]\s*\\?[\"']?"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    (
        "webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,})",
    ),
    (
        "webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/(\d{10,}/[A-Za-z0-9_-]{30,})",
    ),
    ("webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/([\w@/-]{40,})"),
    ("bearer token", "bearer", r"(?i:\bbearer)(?:[ \t]+|%20)([A-Za-z0-9._~+/|:-]{16,}=*)"),
    (
        "basic auth",
        "authorization",
        r"(?i:\b(?:proxy-)?authorization\\?[\"']?\]?\s*[:=,]\s*\\?[\"']?basic)[ \t]+"
        r"([A-Za-z0-9+/]{8,}=*)",
    ),
    (
        "digest auth",
        "digest",
        r"(?i:\bauthorization\\?[\"']?\s*[:=]\s*\\?[\"']?digest\b)[^\r\n]{0,1000}?"
        r"response=\\?\"?([a-f0-9]{32,64})",
    ),
    (
        "header",
        "authorization",
        r"(?i:\bauthorization\\?[\"']?\s*:\s*\\?[\"']?(?:token|apikey|key|negotiate|ntlm|"
        r"aws4-hmac-sha256|sso-key|splunk|genie-?key))[ \t]+([A-Za-z0-9._~+/=:-]{16,})",
    ),
    (
        "header",
        "authorization",
        r"(?i:\bauthorization\\?[\"']?\s*:\s*\\?[\"']?)(?=[A-Za-z0-9._~+/=-]*\d)"
        r"([A-Za-z0-9._~+/=-]{20,})",
    ),
    (
        "header",
        "x-api-key",
        r"(?i:\bx-api-key\\?[\"']?\s*:)[ \t]*\\?[\"']?([A-Za-z0-9._~+/=-]{16,})",
    ),
    ("signature", "signature=", r"(?i:signature)=([A-Fa-f0-9]{64}|[A-Za-z0-9%+/_-]{40,})"),
    (
        "url password",
        "://",
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://"
        # Neither a template placeholder nor the port of an address.
        r"[^\s:/@\"'<>]*:(?!\$?\{[^{}\n]*\}@|\$\w+@|%[sdr]@|%\(\w+\)s@|\d{1,5}[?#])"
        r"([^\s@/\"'<>]+)@",
    ),
    (
        "url token",
        "://",
        r"(?<![A-Za-z0-9+.-])https?://(?=[A-Za-z_-]*\d)([A-Za-z0-9_-]{16,})@",
    ),
    ("password hash", "$", r"\$(?:2[abxy]|5|6|1|apr1|y|7|argon2id?|scrypt)\$[^\s:\"',]{20,}"),
    (
        "sql password",
        "identified",
        r"\b(?:IDENTIFIED\s+BY|identified\s+by(?=[^'\n]{0,20}'[^'\n]*\d))\s+(?i:password\s+)?'([^'\n]{4,})'",
    ),
    (
        "sql password",
        "password",
        r"(?i:\b(?:user|role|login)\b[^\n;]{0,200}?\bpassword)\s+'([^'\n]{4,})'",
    ),
)
_GIVEN: tuple[tuple[str, tuple[str, ...], str, Callable[[re.Match[str]], bool]], ...] = (
    (
        "password",
        ("curl",),
        r"\bcurl\b[^\n|;&]{0,500}?\s(?:-[A-Za-z]*u\s?|--(?:proxy-)?user[ =])"
        rf"{_ANY_QUOTE}[^\s:\"'`/]{{1,100}}:([^\s\"'`]{{4,}})",
        _is_password_of_user,
    ),
    (
        "cookie",
        ("cookie", "curl"),
        r"(?i:\b(?:set-)?cookie\\?[\"']?\s*[:=]\s*|--cookie[ =]|\bcurl\b[^\n|;&]{0,300}?\s-b\s?)"
        rf"{_ANY_QUOTE}((?:[\w.!#$%*^|~-]{{1,80}}=[^;\s\"'`\\]{{1,4000}}(?:;[ ]?)?){{1,60}})",
        lambda match: any(_is_parameter(pair) for pair in re.finditer(r"=([^;\s]{6,})", match[1])),
    ),
    (
        "url parameter",
        ("?", "&"),
        r"(?i:[?&](?:amp;)?(?:[\w-]{0,20}[_-])?(?:access_?token|refresh_?token|id_?token|token"
        r"|api_?key|apikey|app_?key|key|sig|signature|secret|client_secret|password|passwd|pwd"
        r"|auth|jwt|session_?id|session|sid|sas|credential|x-amz-security-token|code)=)"
        r"([^\s&#\"'`<>\\;,)\]}]{6,})",
        _is_parameter,
    ),
    (
        "password",
        ("password", "token", "secret", "key", "pass"),
        rf"{_FLAG}(?:password|passwd|passphrase|token|secret|api-?key|access-?key|private-?key"
        rf"|secret-?key|pass)[ =]{_ANY_QUOTE}([^\s\"'`<>\[\]|()]{{6,}})",
        lambda match: _is_given(match) and _is_random(match[1]),
    ),
    (
        "password",
        ("sshpass", "mysql", "docker login", "redis-cli", "mongo", "ldap", "htpasswd"),
        r"\b(?:sshpass\s+-p\s?|mysql(?:dump|admin)?\b[^\n|;&]{0,200}?\s-p|redis-cli\b[^\n|;&]{0,200}?"
        r"\s-a\s|mongo(?:sh|dump|restore)?\b[^\n|;&]{0,200}?\s-p\s|docker\s+login\b[^\n|;&]{0,200}?\s-p\s"
        r"|ldap(?:search|modify|add)\b[^\n|;&]{0,200}?\s-w\s|htpasswd\s+-[a-z]*b[a-z]*\s+\S+\s+\S+\s)"
        rf"{_ANY_QUOTE}([^\s\"'`]{{4,}})",
        _is_password_of_user,
    ),
    (
        "password",
        ("login", "machine"),
        r"\b(?:machine|login|default)\s+\S{1,200}\s+(?:login\s+\S{1,200}\s+)?password\s+(\S{4,})",
        _is_password_of_user,
    ),
    (
        "password",
        (":5432:",),
        r"(?m:^[\w.*-]{1,200}:5432:[^:\s]{1,100}:[^:\s]{1,100}:)(\S{4,})",
        _is_password_of_user,
    ),
    (
        "password",
        ("password>", "passphrase>", "secret>", "token>", "apikey>", "api-key>", "privatekey>"),
        r"(?i:<(?:[\w.-]+:)?[\w.-]{0,40}(?:password|passphrase|secret|token|apikey|api-key|privatekey)>)"
        r"\s*([^<\s]{4,})\s*</",
        _is_given,
    ),
    (
        "password",
        ("env ",),
        r"(?m:^\s*ENV\s+)[A-Z0-9_]{0,60}(?:PASSWORD|SECRET|TOKEN|_KEY|PASSWD|_PASS)[A-Z0-9_]{0,20}"
        r"[ ]+(\S{6,})",
        _is_given,
    ),
    (
        "registry auth",
        ('auth"',),
        r"\"auth\\?\"\s*:\s*\\?\"([A-Za-z0-9+/]{12,}={0,2})\\?\"",
        _is_given,
    ),
)

_URLS = tuple(each for each in _IN_CONTEXT if each[0] in ("url password", "url token"))

FORMATS: tuple[Format, ...] = (
    *(
        Format(name, (word,), re.compile(pattern, re.DOTALL))
        for name, word, pattern in _IN_CONTEXT
        if (name, word, pattern) not in _URLS
    ),
    *(Format(name, (word,), re.compile(pattern), back=31) for name, word, pattern in _URLS),
    *(
        Format(
            name,
            tuple(words.split()),
            re.compile(_BEFORE + pattern),
            exact=True,
            back=_WITHIN.get(name, 0),
        )
        for name, words, pattern in _SIMPLE
    ),
    *(Format(name, words, re.compile(text), check) for name, words, text, check in _GIVEN),
    Format(
        "assignment",
        _ASSIGN_WORDS,
        re.compile(_ASSIGNED),
        _is_assigned,
        back=14,
        after=re.compile(r"[\w-]{0,60}[\"'`\\\])]{0,5}[ \t]{0,8}[:=?]"),
    ),
    Format(
        "assignment",
        _ASSIGN_WORDS,
        re.compile(
            rf"(?i:passw|secret|token|key)[\w-]{{0,40}}{_ANY_QUOTE}\s{{0,40}},?\s{{0,40}}(?:-\s{{0,8}})?"
            rf"{_ANY_QUOTE}[vV]alue{_ANY_QUOTE}\s{{0,8}}[:=]\s{{0,8}}{_ANY_QUOTE}([^\s\"'`,(){{}}\[\]]{{6,}})"
        ),
        lambda match: _is_given(match) and _is_random(match[1]),
        back=0,
        after=re.compile(r"[\w-]{0,60}[\"'`\\]{0,5}\s{0,40},?\s{0,40}-?\s{0,8}[\"'`\\]{0,5}value"),
    ),
)
"""All formats; where two match the same text, both are masked as one."""
