"""The vocabulary of review sections, word by word."""

from __future__ import annotations

from cuggino.domain.findings import parse_findings
from tests.vectors import each


def what(review: str) -> list[str]:
    return [finding.what for finding in parse_findings(review)]


@each(
    "title",
    [
        *("Summary", "Overall summary", "Verdict", "Conclusion", "Assessment", "Results"),
        *("Overview", "Introduction", "Scope", "Method", "Methodology", "Approach", "Baseline"),
        *("Context", "Background", "Note", "Notes", "Checked", "What I checked", "Verified"),
        *("What was tested", "What matches", "What is fine", "What is right", "What works"),
        *("Works", "OK", "Passed", "Passes", "Passing", "Strengths", "Positive", "Positives"),
        *("Fine", "Test", "Tests run", "Checks", "Commands", "Command run", "Evidence"),
        *("Next steps", "Settled", "Fixed", "Resolved", "2. **Summary**:"),
    ],
)
def test_each_neutral_section_has_no_findings(title: str) -> None:
    """Sections on completed or good work have no findings if other sections do."""
    assert ["b"] == what(f"## {title}\n- a\n\n## Findings\n- b")


@each(
    "title",
    [
        *("Findings", "Open issues", "Remaining problem", "New defects", "Other bugs", "Bug"),
        *("Minor gaps", "Gap", "Mismatch", "Mismatches", "Differences", "Deviations", "Changes"),
        *("Required changes", "Requested changes", "Changes required", "Missing", "Blockers"),
        *("What is missing", "Must fix", "Should fix", "Critical", "Major", "Minor", "High"),
        *("Medium", "Low", "Major findings", "Critical issue", "Blocking issues", "Main problems"),
    ],
)
def test_each_list_of_findings_is_a_list(title: str) -> None:
    """A numbered heading that only introduces a list is not a finding itself."""
    assert ["a", "b"] == what(f"## 1. {title}\n- a\n- b")


@each(
    "number",
    [
        *("1.", "12)", "A1", "1.2.3", "Finding 1", "Issue #2", "Problem 3:", "Bug 4", "Defect 5"),
        *("Blocker 6", "Finding:", "Issue:", "Problem :", "Bug:", "Defect:", "Blocker:", "[F1]"),
    ],
)
def test_each_kind_of_number_makes_a_heading_a_finding(number: str) -> None:
    """A numbered heading includes the items below it."""
    assert [f"{number} No check\na\nb"] == what(f"## {number} No check\n- a\n- b")


@each(
    "field",
    [
        *("Place", "Where", "Location", "File", "Files", "Spec", "Specs", "Specification"),
        *("Requirement", "Requirements", "Expected", "Actual", "Code", "Found", "Observed"),
        *("Severity", "Priority", "Fix", "Suggestion", "Suggested fix", "Recommendation"),
        *("Impact", "Why", "Reason", "What", "Problem", "Evidence", "Detail", "Details", "Steps"),
        *("Reproduce", "Reproduction", "Proof", "Demands", "Demanded", "Says", "Does"),
        *("Spec says", "Code does", "Code is", "**Place**"),
    ],
)
def test_each_field_belongs_to_its_finding(field: str) -> None:
    """An item that adds a field to the previous one belongs to that finding."""
    assert [f"a\n{field}: b"] == what(f"- a\n- {field}: b")


@each("field", ["Place", "Where", "Location", "File", "Files", "Code"])
def test_each_label_of_a_location(field: str) -> None:
    """A labeled location takes precedence over one with a line number."""
    (finding,) = parse_findings(f"- a, as in src/b.py:3\n  {field}: src/a.py")
    assert "src/a.py" == finding.where


@each("name", ["Dockerfile", "Jenkinsfile", "Makefile", "go.mod.lock", "x.py"])
def test_files_by_their_names(name: str) -> None:
    """Files without an extension are recognized by name, others by extension."""
    assert [name] == [finding.where for finding in parse_findings(f"- mend {name} first")]


@each("name", ["Node.js", "vue.js", "Next.js", "React.js"])
def test_products_are_no_files(name: str) -> None:
    """A product named like a file is not a location."""
    assert [None] == [finding.where for finding in parse_findings(f"- mend {name} first")]
