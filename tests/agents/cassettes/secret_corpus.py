"""Texts with a secret each, and everyday lines without one.

No secret is real, and none stands here in one piece: scanners would report it.
"""

from __future__ import annotations

H32 = "0f3c9a7be1d24586" * 2
H40 = "9b2f7c01d4e83a65f210" * 2
H64 = "7d1e0b94c2f35a68" * 4
B40 = "wJalr7UtnFEMI4K7MDENGbPxRfiCY1EKEY9zAb2+"
MIX = "aB3dE5fG7hJ9kL1m"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
PEM = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"

TOKENS: tuple[str, ...] = (
    "sk-ant-api03-" + MIX * 3,
    "sk-proj-" + MIX * 3,
    "sk-or-v1-" + H64,
    "ghp_" + MIX * 2 + "abcd",
    "gho_" + MIX * 2 + "abcd",
    "ghs_" + MIX * 2 + "abcd",
    "github_pat_" + "11ABCDE0Y0" + "_" + MIX * 3,
    "glpat-" + "x7Yz-" * 4,
    "glrt-" + "x7Yz-" * 4,
    "ATBB" + MIX * 2,
    "ATATT3xFfGF0" + MIX * 4,
    "AKIA" + "Q7ZX5PLM" * 2,
    "ASIA" + "Q7ZX5PLM" * 2,
    "AIza" + "Sy7-Q" * 7,
    "ya29." + MIX * 3,
    "1//0" + MIX * 3,
    "GOCSPX-" + MIX + MIX[:12],
    "xoxb-" + "2834-9182-" + MIX,
    "xapp-1-" + "A01-2834-" + MIX,
    "sk_live_" + MIX * 2,
    "rk_test_" + MIX * 2,
    "whsec_" + MIX * 2,
    "npm_" + MIX * 2 + "abcd",
    "pypi-" + "AgEIcHlwaS5vcmc" + MIX * 3,
    "rubygems_" + H40 + "12345678",
    "hf_" + MIX * 2 + "ab",
    "SG." + MIX + "abcdef." + MIX * 2 + "abc",
    "dop_v1_" + H64,
    "shpat_" + H32,
    "sq0atp-" + MIX + "abcdef",
    "lin_api_" + MIX * 2 + "abcdefgh",
    "ntn_" + MIX * 3,
    "dapi" + H32,
    "dp.pt." + MIX * 2 + "abcdefgh",
    "hvs." + MIX * 2,
    "pscale_tkn_" + MIX * 3,
    "sbp_" + H40,
    "r8_" + MIX * 2 + "abcde",
    "gsk_" + MIX * 3,
    "pplx-" + MIX * 3,
    "xai-" + MIX * 4,
    "glsa_" + MIX * 2 + "_0a1b2c3d",
    "NRAK-" + "Q7ZX5PLM4" * 3,
    "PMAK-" + H32[:24] + "-" + H32 + "0f",
    "figd_" + MIX * 2 + "abcdefgh",
    "dckr_pat_" + MIX + "abcdefghijk",
    "AGE-SECRET-KEY-1" + "QPZRY9X8" * 7,
    JWT,
)
"""Tokens that are unmistakable by themselves."""

POSITIVES: tuple[tuple[str, str], ...] = (
    *((f"it printed {token} here", token) for token in TOKENS),
    ("postgres://app:s3cr3t@db:5432/x", "s3cr3t"),
    ("redis://:gr33nEggs@cache:6379/0", "gr33nEggs"),
    ("mongodb+srv://admin:gr33nEggs@c0.example.net/x", "gr33nEggs"),
    ("amqp://guest2:gr33nEggs@mq//", "gr33nEggs"),
    ("git clone https://" + H40 + "@github.com/o/r.git", H40),
    ("https://oauth2:gr33nEggs@gitlab.com/o/r.git", "gr33nEggs"),
    ("SENTRY_DSN=https://" + H32 + "@o1.ingest.sentry.io/2", H32),
    ("https://hooks.slack.com/services/T0/B0/" + MIX * 2, MIX * 2),
    ("https://discord.com/api/webhooks/123456789012/" + MIX * 3, MIX * 3),
    (f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n-----END RSA PRIVATE KEY-----", PEM),
    (f"-----BEGIN PRIVATE KEY-----\n{PEM}\n-----END PRIVATE KEY-----", PEM),
    (f'"private_key": "-----BEGIN PRIVATE KEY-----\\n{PEM}\\n-----END PRIVATE KEY-----\\n"', PEM),
    (f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{PEM}\n-----END PGP PRIVATE KEY BLOCK-----", PEM),
    (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PEM}", PEM),
)
"""A text, and the secret in it."""

WORDS: tuple[str, ...] = (
    "PASSWORD=hunter2",
    'password = "s3same0pen"',
    "deploy --password gr33nEggs2 --verbose",
    '{"client_secret":"' + MIX + '"}',
    "https://example.org/reset?token=" + H32,
    "Cookie: session=" + MIX + "; theme=dark",
    "Authorization: Bearer " + MIX + MIX,
    "aws_secret_access_key = " + B40,
    "mysql -u root -pgr33nEggs app",
    "CREATE USER app IDENTIFIED BY 'gr33nEggs';",
    "ENCRYPTION_KEY=" + H64,
)
"""Values that only English words beside them tell to be secrets."""

NEGATIVES: tuple[str, ...] = tuple(
    line
    for line in f"""\
password = read_password(prompt)
password: {{{{ vault_password }}}}
if password != confirm_password:
user.password = bcrypt.hashpw(raw, bcrypt.gensalt(12))
token: Token = lexer.peek()
token_count = len(encoding.encode(text))
TOKEN_URL = "https://auth.example.org/oauth2/token"
token_endpoint: https://auth.example.org/oauth2/v2.0/token
{{{{ secrets.GITHUB_TOKEN }}}}
secret_name = "db-credentials-2"
from secrets import token_urlsafe
apiKey={{props.apiKey2}}
public_key = "ssh-ed25519"
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJd0fX4Yq8m2n7b9c1v3x5z me@host
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 me@host
publicKey: {B40}
KEY_UP = 0x26
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
assert "-----BEGIN RSA PRIVATE KEY-----" not in text
headers = {{'Authorization': f'Bearer {{token}}'}}
authorization_url = "https://auth.example.org/authorize"
X-Request-Id: 3f2504e0-4f89-11d3-9a0c-0305e82c3301
ETag: "{H32}"
curl -fsSL https://example.org/install.sh | sh
curl -u "$USER:$PASS" https://example.org
curl -X POST -d @body.json http://localhost:8080/api
curl -sS -o /dev/null -w '%{{http_code}}' http://localhost:3000
https://example.org:8080/a@b
https://example.org/?page=2&sort=name
https://example.org/?q=password+reset
https://example.org/search?query=token&lang=en
https://example.org/page?key=about
http://localhost:5173?mail=me@example.com
git@github.com:owner/repo.git
git clone https://github.com/owner/repo.git
ssh://git@example.org:22/owner/repo.git
"postgresql://{{user}}:{{password}}@{{host}}/app"
postgres://app:${{DB_PASSWORD}}@db/app
"mysql://%s:%s@%s"
commit {H40}
index 83db48f..bf269f4 100644
git diff {H40}..HEAD
@@ -12,7 +12,9 @@ def token(self):
sha256:{H64}
"integrity": "sha512-{B40}{B40}=="
resolved "https://registry.yarnpkg.com/lodash/-/lodash-4.17.21.tgz#{H40}"
checksum = "{H64}"
md5: {H32}
{H64}  dist/cuggino-0.2.0.tar.gz
3f2504e0-4f89-11d3-9a0c-0305e82c3301
id: 01a2055c-6eb7-7597-a2eb-71711e39c18c
request_id=req_011CQmQhT7bfDNRbF2rX8vZa
toolu_01A09q90qw90lq917835lq9
session_id = "01a2055c-6eb7-7597-a2eb-71711e39c18c"
error: expected token `;`, found `fn`
fatal: could not read Password for 'https://github.com': terminal prompts disabled
npm WARN deprecated request@2.88.2: request has been deprecated
pyjwt==2.8.0
@Value("${{app.secret}}") private String secret;
val token = intent.getStringExtra("token")
ARG TOKEN
ssh -p 2222 me@host
x = 0x7fffffffffffffff
version = "2.1.329"
compass: north12345
arn:aws:secretsmanager:eu-west-1:123456789012:secret:app-AbCdEf
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ
-> token-of-the-day-is-a-long-one and risk-assessment-of-everything
1. Create a token at https://example.org/settings/tokens
""".splitlines()
    if line.strip()
)
"""Everyday lines without a secret: hashes, ids and URLs near its forms, and a sample of words."""
