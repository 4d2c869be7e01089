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
password = os.environ["DB_PASSWORD"]
password = getpass.getpass()
password: str
password: str | None = None
password: string;
password = None
password = ""
password = "password"
password = "changeme"
password = "your-password-here"
password: "${{DB_PASSWORD}}"
password: {{{{ vault_password }}}}
password: <redacted>
password=***
password := flag.String("password", "", "the password")
password_hash = hash_password(plain_text)
connect(password=password2, host=host)
login(user, password=new_password2)
password_field = form.fields["password"]
PASSWORD_MIN_LENGTH = 12
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
password_reset_url = "/accounts/reset/done/2"
password_validator = validators.get("password")
if password != confirm_password:
if (password === confirmPassword) {{
assert password == expected_password
raise ValueError("password must have 12 characters")
"password": {{"type": "string", "minLength": 8}}
"password": "string"
"passwordPolicy": "strict"
<input type="password" name="password" id="password2">
<label for="password">Password</label>
<password></password>
SELECT password FROM users WHERE id = 42
ALTER TABLE users ADD COLUMN password varchar(255)
user.password = bcrypt.hashpw(raw, bcrypt.gensalt(12))
def check_password(self, password: bytes) -> bool:
The password is stored in the keychain, not in the file.
Enter passphrase for key '/home/me/.ssh/id_ed25519':
passwd: password updated successfully
PWD=/home/me/project
OLDPWD=/home/me
token = get_token()
token = request.headers["X-Token"]
token = self.next_token()
token = tokens[0]
token = tokens.pop()
token: Token = lexer.peek()
token: usize,
token: uint256
tokens = 128000
max_tokens = 4096
max_tokens: 200000
"max_tokens": 8192,
"input_tokens": 12345678,
"output_tokens": 4242
"total_tokens": 1234567
"token_type": "bearer"
"token_count": 123456
token_count = len(encoding.encode(text))
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
tokenizer_config = "tokenizer_v3.json"
TOKEN_URL = "https://auth.example.org/oauth2/token"
TOKEN_EXPIRY_SECONDS = 86400
token_endpoint: https://auth.example.org/oauth2/v2.0/token
token_path = Path("~/.config/app/token.json")
nextToken: "page2of17results"
next_page_token = response.get("nextPageToken")
cancellationToken: CancellationToken.None
const token = await this.auth.getToken({{ scope: "read:all" }});
const [token, setToken] = useState(null);
expect(token).toBe("token1");
csrf_token = {{% csrf_token %}}
{{{{ secrets.GITHUB_TOKEN }}}}
GITHUB_TOKEN: ${{{{ secrets.GITHUB_TOKEN }}}}
GITHUB_TOKEN=${{GITHUB_TOKEN:-}}
env: TOKEN=$TOKEN
export API_KEY=$(cat /run/secrets/api_key)
export API_KEY="<your api key>"
API_KEY=your_api_key_here
API_KEY=xxxxxxxxxxxxxxxxxxxx
API_KEY=
SECRET_KEY=changeme
SECRET_KEY = env("SECRET_KEY")
secret = secrets.token_hex(32)
secret_name = "db-credentials-2"
secretName: my-tls-secret-2
secretKeyRef:
secretRef: {{name: app-secrets}}
kubectl get secret my-app-secret-2 -o yaml
secret: true
secrets: inherit
from secrets import token_urlsafe
The secret of a good test is that it can fail.
api_key = config.api_key
api_key = os.getenv("OPENAI_API_KEY")
apiKey: process.env.API_KEY,
apiKey: string | undefined;
apiKey={{props.apiKey2}}
"apiKey": "API key for the service"
api_key_path = "/etc/app/key2.pem"
public_key = "ssh-ed25519"
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJd0fX4Yq8m2n7b9c1v3x5z me@host
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 me@host
publicKey: {B40}
primary_key = True
primaryKey: "user_id2",
foreign_key = "orders.user_id2"
cache_key = f"user:{{user_id}}:v2"
cacheKey: "node-modules-v20-linux",
key: node-modules-${{{{ hashFiles('package-lock.json') }}}}
key = "ArrowDown2"
"key": "value1234567"
sort_key: created_at_2
KEY_UP = 0x26
const KEYS = ["a1", "b2"];
for key, value in settings.items():
key=lambda item: item[1]
keyboard: "qwertz105"
map.get("key12345")
private_key_path: ~/.ssh/id_rsa
SSH_PRIVATE_KEY_FILE=/home/me/.ssh/id_ed25519
access_key_id: null
accessKey="s"
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
assert "-----BEGIN RSA PRIVATE KEY-----" not in text
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
headers = {{'Authorization': f'Bearer {{token}}'}}
headers["Authorization"] = "Bearer " + token
Authorization: Basic
authorization_url = "https://auth.example.org/authorize"
The header Authorization is required.
WWW-Authenticate: Basic realm="Login"
X-Request-Id: 3f2504e0-4f89-11d3-9a0c-0305e82c3301
ETag: "{H32}"
Content-Type: application/json; charset=utf-8
Cookie: yes
cookie consent banner
document.cookie = name + "=" + value;
Set-Cookie: theme=dark; Path=/
cookies = session.cookies.get_dict()
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
Merge: 1a2b3c4 5d6e7f8
index 83db48f..bf269f4 100644
git diff {H40}..HEAD
git checkout -b fix/token-refresh-2
git log --oneline -20 --author=me
[main 4f5e6d7] Add password reset
 create mode 100644 src/auth/token.py
diff --git a/src/token.py b/src/token.py
@@ -12,7 +12,9 @@ def token(self):
On branch feature/api-key-rotation
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
run 0193b2c1 ended: approved after 2 iterations
2026-11-22T22:17:03Z INFO token refreshed for user 42
2026-11-22 22:17:03,123 DEBUG auth: password check took 12ms
ERROR: invalid token at line 12 column 8
SyntaxError: Unexpected token '<', "<!DOCTYPE "... is not valid JSON
error: expected token `;`, found `fn`
Login failed: wrong password
fatal: could not read Password for 'https://github.com': terminal prompts disabled
remote: Invalid username or password.
401 Unauthorized: token expired
WARN 3 tokens left in bucket rate-limit-7
npm WARN deprecated request@2.88.2: request has been deprecated
added 1423 packages in 34s
tests/test_auth.py::test_password_reset2 PASSED [ 12%]
FAILED tests/test_token.py::test_expired - AssertionError: assert 401 == 200
=== 412 passed, 3 skipped in 18.42s ===
Requirement already satisfied: tokenizers==0.15.2 in ./venv
tokenizers>=0.14,<0.20
python-jose[cryptography]==3.3.0
pyjwt==2.8.0
import {{ Token }} from './token2';
from app.auth.tokens import create_token_v2
export const TOKEN_KEY = "auth.token"
localStorage.setItem("token", data.token);
localStorage.getItem('access_token')
type Token struct {{ Kind int; Text string }}
struct Token2<'a> {{ kind: TokenKind, text: &'a str }}
enum TokenKind {{ Ident, Number, String }}
fn parse_token(input: &str) -> Result<Token, Error>
public String getPassword() {{ return password; }}
private final String secret;
@Value("${{app.secret}}") private String secret;
val token = intent.getStringExtra("token")
def secret_santa(names: list[str]) -> dict[str, str]:
class PasswordResetView(View):
router.post("/password/reset", resetPassword);
app.use(csrf({{ cookie: true }}));
jwt.verify(token, publicKey, {{ algorithms: ["RS256"] }})
const algorithm = "aes-256-gcm";
--token-limit 200000
--max-tokens 4096
--password-file /run/secrets/db
--secret id=npmrc,src=.npmrc
RUN --mount=type=secret,id=token npm ci
ARG TOKEN
ENV NODE_ENV production
ENV PATH="/opt/venv/bin:$PATH"
mysql -u root -p app < dump.sql
docker login -u me --password-stdin r.io
ssh -p 2222 me@host
mkdir -p src/components/token2
psql -h db -U app -c 'select 1'
docker run -p 8080:80 -e TZ=UTC nginx:1.27
:root {{ --token-color-2: #ff8800; }}
color: #1e90ff; background: #0f3c9a;
font-feature-settings: "ss01", "cv11";
.token.password2 {{ color: red }}
x = 0x7fffffffffffffff
version = "2.1.329"
port = 5432
print(f"{{token=}}")
logger.info("token=%s", token)
logging.debug("password=%r", password)
sig = inspect.signature(function)
signature = inspect.signature(fn2)
signature: verify_signature2(payload)
significant: true12345
pattern = re.compile(r"token=([a-z0-9]+)")
PAT = re.compile("[a-z]{{6,12}}")
pass  # 2 tests left
compass: north12345
bypass_cache = cache2
passed: 412, failed: 3
credentials: include
credentials: "same-origin"
aws configure set region eu-west-1
arn:aws:secretsmanager:eu-west-1:123456789012:secret:app-AbCdEf
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ
-> token-of-the-day-is-a-long-one and risk-assessment-of-everything
The API key is read from ANTHROPIC_API_KEY.
Set `password: "..."` in the file, then restart.
| `token` | string | the token of the session |
1. Create a token at https://example.org/settings/tokens
// TODO: rotate the secret every 90 days
# password is hashed with argon2id, 3 iterations
""".splitlines()
    if line.strip()
)
"""Everyday lines of code, logs and documents, with hashes and ids, and without a secret."""
