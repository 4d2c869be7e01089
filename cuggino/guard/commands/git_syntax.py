"""The relevant options of git's subcommands."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call
from cuggino.guard.commands.options import Parsed, Syntax, parse_options, row_of
from cuggino.guard.commands.wordlist import words

_TABLE = """
commit: mFCct|message file author date reuse-message reedit-message fixup squash cleanup trailer
  template pathspec-from-file|no-verify amend all signoff allow-empty no-edit verbose quiet edit
  reset-author only include verify|Su
tag: mFu|message file local-user sort format contains cleanup points-at merged no-merged
  trailer|list delete force annotate edit sign verify|n
merge: msXF|message strategy strategy-option file into-name cleanup|no-verify ff-only no-ff
  squash abort continue|S
pull: sXoj|strategy strategy-option upload-pack depth jobs refmap server-option
  shallow-since|rebase force all ff-only prune tags autostash unshallow|rS
fetch: oj|upload-pack depth jobs refmap server-option deepen shallow-since negotiation-tip|force
  all prune tags unshallow update-head-ok dry-run
push: o|receive-pack exec repo push-option recurse-submodules|force force-with-lease
  force-if-includes mirror delete prune all tags follow-tags set-upstream dry-run no-verify
  atomic verify porcelain progress
clone: bocuj|upload-pack template config branch origin depth jobs filter reference
  reference-if-able revision separate-git-dir shallow-since server-option bundle-uri|recursive
  recurse-submodules single-branch bare mirror local no-checkout shared sparse quiet
init: b|template initial-branch separate-git-dir object-format ref-format|bare quiet
ls-remote: o|upload-pack exec sort server-option|heads tags refs exit-code symref branches
archive: o|output remote exec prefix format add-file mtime add-virtual-file|list verbose
  worktree-attributes
rebase: sXxC|exec onto strategy strategy-option empty whitespace keep-base|interactive edit-todo
  continue abort skip quit autostash autosquash root rebase-merges no-verify signoff
  update-refs|rS
grep: efABCm|max-depth max-count threads color context|open-files-in-pager or only-matching
  files-with-matches ext-grep textconv untracked|O
format-patch: novUlM|output grep author committer since until after before format max-count skip
  diff-filter unified inter-hunk-context word-diff-regex src-prefix dst-prefix line-prefix date
  glob exclude encoding output-directory suffix subject-prefix start-number to cc in-reply-to
  from base signature|ext-diff output-indicator-new output-indicator-old
  output-indicator-context exit-code oneline graph all stat patch pretty grep-reflog
  format-patch full-diff follow function-context find-renames stdout
checkout: bB|orphan conflict pathspec-from-file|force ours theirs merge patch track detach
  quiet|t
switch: cC|create force-create orphan conflict|force discard-changes detach merge track guess
restore: s|source conflict pathspec-from-file|staged worktree ours theirs patch overlay
reset: |pathspec-from-file|hard soft mixed keep merge patch
rm: |pathspec-from-file|cached force dry-run ignore-unmatch
add: |chmod pathspec-from-file|all patch edit force update
stash: m|message pathspec-from-file output|all include-untracked keep-index patch staged quiet
  index
clean: e|exclude|force dry-run interactive quiet
branch: u|set-upstream-to contains sort format points-at merged|delete force move copy
  edit-description unset-upstream list all remotes show-current verbose|t
worktree: bB|reason expire orphan|force detach checkout lock track porcelain quiet
apply: pC|directory exclude include build-fake-ancestor whitespace|unsafe-paths check stat index
  cached reverse 3way reject unidiff-zero numstat summary recount
am: pC|directory exclude include patch-format whitespace empty|interactive continue abort skip
  3way signoff quiet reject|S
submodule: b|branch name reference depth jobs|init recursive remote quiet force merge rebase
  checkout progress all
notes: mFCc|message file ref reuse-message reedit-message
bundle: |version|all progress quiet
bisect: |term-new term-old term-good term-bad|no-checkout
cherry-pick: msX|mainline strategy strategy-option cleanup|edit no-commit continue abort skip
  signoff|S
revert: msX|mainline strategy strategy-option cleanup|edit no-edit no-commit continue abort
  skip|S
merge-file: L|marker-size diff-algorithm|stdout object-id ours theirs union diff3 zdiff3 quiet
interpret-trailers: |where if-exists if-missing trailer|in-place trim-empty only-trailers
  only-input unfold parse no-divider
fast-export: MC|export-marks import-marks import-marks-if-exists refspec anonymize-map|all
  signed-tags tag-of-filtered-object no-data full-tree reencode
gc: ||prune aggressive auto quiet no-prune
log show diff shortlog whatchanged range-diff rev-list diff-tree diff-index diff-files reflog:
  nSGLOUIlM|output grep author committer since until after before format max-count skip
  diff-filter unified inter-hunk-context word-diff-regex src-prefix dst-prefix line-prefix date
  glob exclude encoding|ext-diff output-indicator-new output-indicator-old
  output-indicator-context exit-code oneline graph all stat patch pretty grep-reflog
  format-patch full-diff follow function-context find-renames
blame annotate: LSCM|since contents date abbrev output
"""
"""By subcommand: letters with a value, long options with one, long ones without, and letters whose
value is attached."""
_OTHER = Syntax(long=("output",))

_RUNS = {
    "--upload-pack": (), "--receive-pack": (), "--exec": ("log", "grep", "commit", "tag"),
    "--ext-diff": (), "--open-files-in-pager": (), "--unsafe-paths": (), "--smtp-server": (),
}  # fmt: skip
_FULL_ONLY = {
    "commit": ("--no-verify", "-n", "--template", "-t"),
    "merge": ("--no-verify",),
    "push": ("--no-verify",),
    "rebase": ("-i", "--interactive", "--edit-todo", "--no-verify"),
    "add": ("-e", "--edit", "-i", "-p", "--patch", "--interactive"),
    "branch": ("--edit-description",),
}
_NEVER = {
    "clone": ("-u", "-c", "--config", "--template", "--bundle-uri", "--reference",
              "--reference-if-able", "--separate-git-dir"),
    "init": ("--template", "--separate-git-dir"),
    "rebase": ("-x",),
    "grep": ("-O",),
}  # fmt: skip

_REST = r"[\w.~^/:{}-]*"
_FROM_GIT = re.compile(
    r"\"?\$\(git (rev-parse|merge-base|describe|symbolic-ref|branch --show-current|rev-list|log"
    r"|ls-files|diff --name-only|stash create|commit-tree|write-tree)(?![\w-])[^()`;|&<>$]*\)"
    rf"{_REST}\"?{_REST}"
)
_VARIABLE = re.compile(rf"\"\$(?:(\w+)|\{{(\w+)\}}){_REST}\"{_REST}")


def parse(sub: Call) -> Parsed:
    """Parse the options and operands of a subcommand."""
    row = row_of(_TABLE, sub.name)
    if row is None:
        return parse_options(sub.args, _OTHER)
    return parse_options(sub.args, Syntax(row[0], words(row[1]), words(row[2]), attached=row[3]))


def dangerous(sub: Call, given: Parsed) -> str:
    """Return why an option is denied: it starts a program, or skips the user's hooks."""
    for option in given.options:
        for name, fine in _RUNS.items():
            is_short_form = len(option.name) > 4 and name.startswith(option.name)
            if (option.name == name or is_short_form) and sub.name not in fine:
                return f"git {sub.name} {option.text}: that option starts a program; leave it out"
        if option.name in _NEVER.get(sub.name, ()):
            return f"git {sub.name} {option.text}: that option may run code; leave it out"
        if option.name in _FULL_ONLY.get(sub.name, ()):
            return f"git {sub.name} {option.text} is not allowed: leave that option out"
        if option.name == "--pathspec-from-file":
            return f"git {sub.name}: name the files instead of {option.text}"
        if option.name.startswith("--out") and option.value is None and option.name != "--output":
            return f"git {sub.name} {option.text}: write --output=FILE out"
    return _unclear(sub, given) if given.unclear else ""


def _unclear(sub: Call, given: Parsed) -> str:
    for word in given.unclear:
        if word.value is None and _is_a_name(word.text, sub.site.trail.loose):
            continue
        return (
            f"'{word.text}' could be an option of git {sub.name}: write it literally, put a"
            " variable in double quotes, or put '--' before it when it is a file"
        )
    return ""


def _is_a_name(text: str, loose: set[str]) -> bool:
    """Return whether the word is certainly a name from git, such as a commit or a branch."""
    if _FROM_GIT.fullmatch(text):
        return True
    variable = _VARIABLE.fullmatch(text)
    return variable is not None and (variable[1] or variable[2]) not in loose
