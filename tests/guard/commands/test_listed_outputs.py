"""Every option that names an output file is checked as a write, in less known ways too."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from tests.guard.commands.listed import allowed_when_listed, denied
from tests.guard.judging import reason_of

LONG = words(
    "--out --output --outfile --out-file --outdir --out-dir --output-file --output-dir "
    "--output-path --output-directory --outputfile --distdir --dist-dir --dest --destination "
    "--junitxml --junit-xml --logfile --log-file --report-file --report-dir --reportfile "
    "--basetemp --target-dir --artifact-dir --build-path --workdir --work-dir --coverage-dir "
    "--coverageDirectory --coverage-output --declarationDir --tsBuildInfoFile --coverprofile "
    "-coverprofile --cpuprofile -memprofile -blockprofile -mutexprofile -outputdir --save "
    "--write-to --cache-dir --cache-location --cache-file --baseline-file --generate-baseline "
    "--log-junit --coverage-html --coverage-clover --coverage-xml --coverage-text --coverage-php"
)
SHORT = (
    *(f"{program} -o ../x/x" for program in words("go gcc cc g++ clang clang++ c++ rustc eslint")),
    *(f"{program} -o ../x/x" for program in words("webpack rollup deno biome pandoc dot ld")),
    *(f"{program} --prefix ../x x" for program in words("npm pnpm yarn poetry pdm")),
    *(f"{program} --cwd ../x x" for program in words("bun yarn uv mvn")),
    *(f"{program} --directory ../x x" for program in words("uv make gmake cmake composer")),
    *(f"{program} --project-dir=../x x" for program in words("poetry ninja go cargo")),
    *(f"{program} -C ../x x" for program in words("make gmake ninja pnpm go cargo")),
    *(f"{program} -C../x x" for program in words("make gmake ninja pnpm go cargo")),
    *("composer --working-dir=../x x", "npm --dir ../x x"),
)
MORE_SHORT = (
    *(f"{program} -o /etc/x a" for program in words("nvcc tcc icc icx emcc em++ ghc ocamlc")),
    *(f"{program} -o /etc/x a" for program in words("ocamlopt swiftc nasm yasm bison flex swig")),
    *(f"{program} -o /etc/x a" for program in words("ldc2 gnatmake fpc iconv xmllint ruff")),
    *(f"{program} -o/etc/x a" for program in words("rustc pandoc dot bison nasm swiftc")),
    *(f"{program} -d /etc/x a" for program in words("javac kotlinc scalac groovyc")),
    *("coverage html -d /etc/x", "clang-format -i /etc/x", "shfmt -w /etc/x", "shfmt --write /x"),
    *("yq -i .a=1 /etc/x", "yq --inplace .a=1 /etc/x", "yq -P --in-place .a=1 /etc/x"),
)
PROTECTED = (
    *(f"anything {option} .git/x a" for option in words("-o -O -o.git/x -O.git/x --any=.git/x")),
    *(f"anything --any-{noun} .git/x" for noun in words("output dir directory dest destination")),
    *(f"anything --any-{noun} .git/x" for noun in words("path file folder root prefix blob store")),
    *(f"anything --{noun} .git/x" for noun in words("section report trace emit")),
    *("objcopy --dump-section .text=.git/x a", "pytest --cov-report=xml:.git/x", "mypy -any=.git"),
    *("pytest --cov-report html:.git/x", "npm pack --pack-destination .git", "npm --cache=.git i"),
    *("rustc --emit dep-info=.git/x a.rs", "go test -trace .git/x", "node --cpu-prof-dir=.git a"),
)
NOT_WRITTEN = (
    *(f"anything --any-{verb}-x=.git/x" for verb in words("exclude ignore skip omit prune config")),
    *(f"anything --any-{verb}-x=.git/x" for verb in words("input filter msg message edit git-dir")),
    *(
        f"anything --any-{verb}-x=.git/x"
        for verb in words("gitdir from read pattern match include")
    ),
    *(f"anything --any-{verb}-x=.git/x" for verb in words("hidden watch source")),
    *(f"{program} -o .git/x" for program in words("od ag ack hexdump stat nl strings ssh mount")),
    *("anything --ignore-file .git/info/exclude", "npx commitlint --edit .git/COMMIT_EDITMSG"),
    *("bat -n .git/config", "anything .git/x", "eslint --cache .claude/x.js", "anything --output"),
    *("clang-format .git/x.c", "yq .a .cuggino.json", "shfmt -d .git/hooks/x", "du -o=.gitignore"),
    *("yq -i '/etc/x' src/b", "go build -overlay x", "rustc -o src/b a.rs", "javac -d src a.java"),
)
REWRITERS = (
    *("rustfmt .git/x", "black .git/x", "phpcbf .git/x", "isort .git/x", "cargo-fmt .git/x"),
    *("gofmt -w .git/x", "gofmt -sw .git/x", "goimports -w .git/x", "prettier --write .git/x"),
    *("prettier -w .git/x", "eslint --fix .git/x", "standard --fix .git/x", "ruff format .git/x"),
    *("biome check --write .git/x", "biome check --apply .git/x", "biome lint --fix .git/x"),
    *("rubocop -a .git/x", "rubocop -A .git/x", "rubocop -x .git/x"),
    *("rubocop --autocorrect .git/x", "rubocop --auto-correct-all .git/x"),
    *("rubocop --fix-layout .git/x", "ruff check --fix .git/x", "autopep8 -i .git/x"),
    *("autopep8 --in-place .git/x", "php-cs-fixer fix .git/x", "stylelint --fix .git/x"),
)
WRITERS = (
    *("link a .git/x", "link .git/x a", "mknod .git/x p", "mknod -m 600 .git/x p"),
    *("rename 's/a/b/' .git/x", "rename -e 's/a/b/' a .git/x", "prename s/a/b/ .git/x"),
    *("gpg -o .git/x a", "gpg --output .git/x a", "gpg2 --output .git/x a"),
    *("gpg --homedir .git a", "gpg --status-file .git/x a", "gpg --logger-file .git/x a"),
    *("gpg --attribute-file .git/x a", "gpg -r x -o .git/x a", "gpg -u x -o .git/x a"),
    *("gpg --recipient x -o .git/x -e a", "xxd a .git/x", "xxd -r a .git/x", "xxd -c 9 a .git/x"),
    *("xxd -l 9 -s 3 a .git/x", "base64 -o .git/x a", "base64 --output .git/x a"),
    *("base32 -o .git/x a", "objcopy a .git/x", "objcopy .git/x"),
    *("objcopy -I binary -O elf a .git/x", "strip .git/x", "strip -o .git/x a"),
    *("gcc a.c -o .git/x", "gcc --output .git/x a.c", "ld -o .git/x a", "pip install -t .git x"),
    *("pip install --target .git x", "pip install --prefix .git x", "pip install --root .git x"),
    *("pip install --src .git x", "pip download -d .git x", "pip download --dest .git x"),
    *("pip install --report .git/x x", "pip install --cache-dir .git x"),
    *("pip wheel --wheel-dir .git x", "pip3 install -t .git x", "7z a .git/x a", "7z x a -o.git"),
    *("7za e a -o.git", "7z d .git/x a", "7z u .git/x a", "7zr rn .git/x a b"),
    *("sqlite3 .git/x 'create table a(b)'", "sqlite3 a '.output .git/x'"),
    *("sqlite3 a '.once .git/x'", "sqlite3 a '.save .git/x'", "sqlite3 a '.backup .git/x'"),
    *("sqlite3 a '.clone .git/x'", "sqlite3 a '.log .git/x'"),
    *("sqlite3 a \"attach database '.git/x' as b\"", "sqlite3 .git/x", "sqlite3 a '.shell id'"),
    *("sqlite3 a '.system id'", "sort -o .git/x a", "sort a -o .git/x", "sort --output=.git/x a"),
    *("sort -T .git a", "sort --temporary-directory .git a", "sort -k 2 -o .git/x a"),
    *("sort -t : -o .git/x a", "sort --compress-program=id a", "uniq a .git/x"),
    *("uniq -f 2 a .git/x", "uniq -s 2 a .git/x", "uniq -w 2 a .git/x"),
    *("uniq --skip-fields 2 a .git/x", "tree -o .git/x", "tree -R", "tree -L 2 -o .git/x"),
    *("date -s x", "date --set x", "date 010203042020", "awk '{print > \".git/x\"}' a"),
    *("awk 'BEGIN{system(\"id\")}'", "awk '{print | \"sh\"}' a", "awk '\"id\" | getline'"),
    *("awk -v a=b '{print >> \".git/x\"}' a", "awk '@load \"x\"'", "awk '@include \"x\"'"),
    *("awk '{print |& \"sh\"}'", "gawk -e '{print > \".git/x\"}' a"),
    *("gawk --source '{print > \".git/x\"}' a", "jq --output=.git/x . a", "rg --pre id x"),
    *("rg --pre=id x", "rg --hostname-bin id x", "fd -x rm -rf .git", "fd -X rm -rf .git"),
    *("fd --exec rm -rf .git", "fd --exec-batch rm -rf .git", "sed -i s/a/b/ .git/x"),
    *("sed --in-place s/a/b/ .git/x", "sed -n -i.bak p .git/x", "sed -e p -i .git/x"),
    *("sed -f a -i .git/x", "sed 's/a/b/w .git/x' a", "sed 'w .git/x' a", "sed '1e id' a"),
    *("sed --expression 'w .git/x' a", "sed -l 9 'w .git/x' a", "sed '/a/Iw .git/x' a"),
    *("sed '/a/Mw .git/x' a", "sed '/a/I,/b/Mw .git/x' a", "gsed -i s/a/b/ .git/x"),
)
TRANSFERS = (
    *("tar -xf a -C .git", "tar xf a -C .git", "tar -cf .git/x a", "tar cf .git/x a"),
    *("tar rf .git/x a", "tar -uf .git/x a", "tar -Af .git/x a", "tar --create --file .git/x a"),
    *("tar --append -f .git/x a", "tar --update -f .git/x a", "tar --delete -f .git/x a"),
    *("tar --extract -f a --directory .git", "tar --get -f a -C .git"),
    *("tar -xf a --to-command=id", "tar -xf a --use-compress-program=id"),
    *("tar -cf a b --checkpoint-action=exec=id", "tar -xf a --rsh-command=id"),
    *("tar -xf a --info-script=id", "tar -xf a --new-volume-script=id"),
    *("tar -xf a --rmt-command=id", "tar -cf a --index-file=.git/x b", "tar -cf a -g .git/x b"),
    *("tar -X x -cf .git/x a", "tar -cf a --listed-incremental=.git/x b", "tar -T x -cf .git/x"),
    *("tar -b 9 -cf .git/x a", "unzip a -d .git", "unzip -d.git a", "unzip -P x a -d .git"),
    *("zip .git/x a", "zip -r .git/x a", "zip a b --unzip-command=id", "zip -b x .git/x a"),
    *("patch .git/x a", "patch -o .git/x a b", "patch --output .git/x a", "patch -r .git/x a"),
    *("patch -d .git", "patch --reject-file=.git/x a", "patch --directory .git"),
    *("patch -B .git/ a", "patch -i a .git/x", "patch --prefix=.git/ a"),
    *("patch --basename-prefix=.git/ a", "patch -p 1 .git/x", "curl -o .git/x u"),
    *("curl --output .git/x u", "curl -O --output-dir .git u", "curl -D .git/x u"),
    *("curl --dump-header .git/x u", "curl -c .git/x u", "curl --cookie-jar .git/x u"),
    *("curl --trace .git/x u", "curl --trace-ascii .git/x u", "curl --stderr .git/x u"),
    *("curl -sSLo .git/x u", "curl --libcurl .git/x u", "curl --etag-save .git/x u"),
    *("curl --hsts .git/x u", "curl --alt-svc .git/x u", "curl -X GET -o .git/x u"),
    *("curl -H x -o .git/x u", "wget -O .git/x u", "wget --output-document .git/x u"),
    *("wget -o .git/x u", "wget --output-file .git/x u", "wget -a .git/x u"),
    *("wget --append-output .git/x u", "wget -P .git u", "wget --directory-prefix .git u"),
    *("wget --save-cookies .git/x u", "wget --warc-file .git/x u", "wget --use-askpass=id u"),
    *("cp a .git/x", "cp -t .git a", "cp --target-directory .git a", "cp -r src .git"),
    *("cp -s a b", "cp --symbolic-link a b", "cp -l a b", "cp --link a b", "cp -S /x a b"),
    *("cp --suffix=/x a b", "mv a .git/x", "mv .git/x a", "mv -t .git a", "ln -s a .git/x"),
    *("ln .git/x a", "ln a .git/x", "ln -t .git a", "install a .git/x", "install -d .git/x"),
    *("install --directory .git/x", "install --strip-program=id a b", "install -m 755 a .git/x"),
    *("install -o x -g y a .git/x", "rsync a .git/x", "rsync --rsh=id a b"),
    *("rsync --rsync-path=id a b", "rsync --remote-option=x a b", "rsync --backup-dir=.git a b"),
    *("rsync --temp-dir .git a b", "rsync -T .git a b", "rsync --log-file .git/x a b"),
    *("rsync --partial-dir .git a b", "rsync -f x a .git/x", "rsync --exclude x a .git/x"),
    *("rsync -B 9 a .git/x", "rm .git/x", "rm -rf .git", "rmdir .git/hooks", "unlink .git/x"),
    *("shred .git/x", "shred -n 3 .git/x", "mkdir .git/x", "mkdir -m 700 .git/x", "mkfifo .git/x"),
    *("touch .git/x", "touch -r a .git/x", "touch -d x .git/x", "truncate -s 0 .git/x"),
    *("tee .git/x", "tee -a .git/x", "chown x .git/x", "chgrp x .git/x", "chown -R x .git"),
    *("chown --reference a .git/x", "chmod -x .git/x", "chmod 644 .git/x"),
    *("setfacl -m u:x:r .git/x", "chattr +i .git/x", "dd if=a of=.git/x", "split a .git/x"),
    *("split -b 9 a .git/x", "split --filter=id a", "csplit -f .git/x a 3"),
    *("csplit --prefix .git/x a 3", "gzip .git/x", "gunzip .git/x", "bzip2 .git/x", "xz .git/x"),
    *("zstd .git/x", "zstd a -o .git/x", "compress .git/x", "find . -fprint .git/x"),
    *("find . -fprint0 .git/x", "find . -fls .git/x", "find .git -delete"),
    *("find . -fprintf .git/x %p", "find . -exec rm -rf .git ;"),
    *("find . -execdir rm -rf .git \\;", "find . -exec rm -rf .git \\;"),
    *("find . -ok rm -rf .git \\;", "find . -okdir rm -rf .git \\;", "find -L src -delete"),
    "find src -follow -delete",
)
SILENT = (
    *("gofmt -l .git/x", "prettier --check .git/x", "black --check .git/x", "eslint .git/x"),
    *("black --diff .git/x", "rustfmt --check .git/x", "tar -tf .git/x", "tar -xOf .git/x"),
    *("unzip -l .git/x", "unzip -p .git/x", "gzip -c .git/x", "gzip -l .git/x", "xz -t .git/x"),
    *("curl -o - u", "wget -O - u", "sort .git/x", "uniq .git/x", "7z l .git/x", "7z t .git/x"),
    *("patch --dry-run .git/x", "xxd .git/x", "base64 .git/x"),
    "sqlite3 -readonly .git/x 'select 1'",
)


def test_output_options_of_any_tool_are_checked(project: str) -> None:
    """The file may be a separate word or follow `=`."""
    forms = [f"sometool {option} /etc/x" for option in LONG]
    forms += [f"sometool {option}=/etc/x" for option in LONG]
    assert [] == allowed_when_listed(forms, project)


def test_program_specific_short_options_are_checked(project: str) -> None:
    """The same letter differs between programs, so each program has a list."""
    assert [] == allowed_when_listed((*SHORT, *MORE_SHORT), project)


def test_protected_values_of_output_options_are_denied(project: str) -> None:
    """For any program: `-o`, `-O`, values after `=`, and options named like a place."""
    policy = Policy(project, level="roles")
    assert [] == allowed_when_listed(PROTECTED, project)
    elsewhere = [command.replace(".git", "src/b") for command in PROTECTED]
    assert sorted(elsewhere) == sorted(allowed_when_listed(elsewhere, project))
    assert [] == denied((*PROTECTED, *NOT_WRITTEN), policy)


def test_rewritten_files_are_checked(project: str) -> None:
    """Formatters and fixers write their files, unless they only check."""
    assert [] == allowed_when_listed(REWRITERS, project)


@pytest.mark.real_agent
def test_writing_programs_are_checked_with_any_options(project: str) -> None:
    """The value of a preceding option is not mistaken for the file."""
    assert [] == allowed_when_listed((*WRITERS, *TRANSFERS), project)


def test_reading_is_allowed(project: str) -> None:
    """If any program may run, reading with the same ones is never denied."""
    assert [] == denied(SILENT, Policy(project, level="roles"))


EXTRA = ("extended", "rsync", "wget", "sqlite3")
WRITES_ELSEWHERE = (
    *("git merge-file .cuggino.json src/a src/b", "git merge-file -L a -q ../x src/a src/b"),
    "git merge-file --ours .git/hooks/pre-commit src/a src/b",
    "git interpret-trailers --in-place --trailer a=b .cuggino.json",
    "git interpret-trailers --in-pl --trailer 'a: b' src/a /etc/passwd",
    "git interpret-trailers --where end --in-place .autonoe/status.json",
    "git fast-export --export-marks .cuggino.json HEAD",
    *("git blame --output .git/hooks/x src/a", "git annotate --output .git/hooks/x src/a"),
    *("git stash show -p --output .git/hooks/x", "git merge-tree --output .git/x a b"),
    *("tar xf a.tar -C src --one-top=.git/hooks", "rsync -r --remove-sent-files .git /tmp/x"),
    "rsync -r --write-batch=.git/hooks/x src/ bin",
    "rsync -r --only-write-batch .git/hooks/x src/ bin",
    "wget --rejected-log=.git/config http://localhost/a",
    *("wget --hsts-file .cuggino.json http://localhost/a", "zip a.zip src/a -O .cuggino.json"),
    *("zip a.zip src/a -rO .cuggino.json", "zip a.zip src/a --out .cuggino.json"),
    *("zip a.zip src/a --output-file=.cuggino.json", "zip a.zip src/a -lf .cuggino.json"),
    *("zip a.zip src/a --logfile-path=.cuggino.json", "awk -F: -i inplace '{print}' .git/config"),
    "gawk -v x=1 -i inplace '{print}' .git/config",
    "gawk -v x=1 --include inplace '{print}' .git/config",
    *("gawk -i inplace -e '{print}' .git/config", "gawk -i inplace -f src/a .git/config"),
    *("fd . src -Hx rm -rf .git", "fd . src -HX rm -rf .git", "fd . src -HIx rm -rf .git"),
    "sqlite3 :memory: \"select writefile('.git/hooks/pre-commit','x')\"",
    "sqlite3 src/a.db 'ATTACH \".cuggino.json\" AS y; create table y.t(a)'",
    "sqlite3 :memory: 'VACUUM INTO \".cuggino.json\"'",
    "sqlite3 :memory: 'vacuum main into \".cuggino.json\"'",
    *("sqlite3 .git/x.db 'select 1; create table a(b)'", "sqlite3 src/a.db '.out .git/x'"),
    *("sqlite3 src/a.db '.onc .git/x'", "sqlite3 src/a.db '.sav .git/x'", "gawk -o.git/x 1 src/a"),
    *("gawk -p.git/x 1 src/a", "gawk -d.git/x 1 src/a", "gawk --profile=.git/x 1 src/a"),
    *("gawk --pretty-print=.git/x 1 src/a", "gawk --dump-variables=.git/x 1 src/a"),
    *("tar -xf a.tar --transform 's,^,.git/,'", "tar -xf a.tar --xform=s,^,.git/hooks/,"),
)
STARTS_UNSEEN = (
    *("sqlite3 src/a.db '.sh id'", "sqlite3 src/a.db '.sys id'", "sqlite3 src/a.db '.load src/a'"),
    *("sqlite3 src/a.db '.once |sh' 'select 1'", "sqlite3 src/a.db '.out |sh'"),
    *("sqlite3 src/a.db '.import \"|id\" t'", "sqlite3 src/a.db '.excel'", "fd . src -Hxrm"),
    *("fd . src --exec=rm", "gawk -l ./x.so 1", "gawk -l./x.so 1", "gawk --load=./x.so 1"),
)
LOOKS = (
    *("less -R .git/config", "mktemp", "mktemp -d", "mktemp -t .git/x.XXX"),
    *("mktemp -u .git/x.XXX", "mktemp --dry-run .git/x.XXX", "mktemp /tmp/x.XXX", "ar t .git/x.a"),
    *("ar p .git/x.a a.o", "ar", "ar x .git/x.a", "ar rcs src/x.a .git/a.o", "ctags -f - src"),
    *("ex -s +wq src/a", "vim +.git/x src/a", "gawk -o 1 .git/x", "gawk -l filefuncs 1 .git/x"),
    *("gawk -W posix 1 .git/x", "gawk -dx 1 .git/x", "gawk -Lfatal 1 .git/x", "gawk -D.git/x 1"),
    *("tar -xf a.tar --transform s,^,src/,", "zstd src/a -o src/b", "zstd -c .git/x"),
)
FINE = (
    *("git merge-file -p .cuggino.json src/a src/b", "git merge-file src/x src/a src/b"),
    "git interpret-trailers --trailer 'a: b' src/a",
    *("git interpret-trailers --in-place --trailer 'a: b' src/a", "git fast-export --all"),
    *("git blame -L 1,2 src/a", "tar -xf a.tar --one-top-level"),
    *("tar -xf a.tar --one-top-level=src/b", "rsync -r --delay-updates src/ bin"),
    *("rsync -r --delete src/ bin", "rsync -r --remove-source-files src/ bin"),
    *("wget --rejected-log=/tmp/log -O src/a http://localhost/a", "zip -r a.zip src"),
    *("zip -qr a.zip src -x src/o", "fd -tx . src", "fd -ex . src", "fd -HI . src -x grep a"),
    *("fd . src -HX grep a", "gawk -v x=1 -i inplace '{print}' src/a"),
    *("awk -F: '{print $1}' src/a", "sqlite3 .git/x.db 'select 1;'"),
    "sqlite3 src/a.db \"select writefile('src/b', data) from t\"",
    *("sqlite3 src/a.db '.out src/b' 'select 1'", "sqlite3 src/a.db '.explain on'", "env -i ls"),
    "env - ls",
)


@pytest.mark.parametrize("command", [*WRITES_ELSEWHERE, *STARTS_UNSEEN])
def test_denied_although_the_program_is_listed(command: str, project: str) -> None:
    """An allowed program may still not write or start everything."""
    assert reason_of(command, Policy(project, extra_commands=EXTRA, allow_destructive=True))


@pytest.mark.parametrize("command", [*FINE, *LOOKS])
def test_harmless_variant_is_allowed(command: str, project: str) -> None:
    """Options that write nothing, or only in the project, are allowed."""
    policy = Policy(project, level="roles")
    assert "" == reason_of(command, policy)
