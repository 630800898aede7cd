"""Counts test cases from what GoogleTest and ctest leave behind."""
import os
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = field(default_factory=list)  # lines worth showing: names of failed tests, why something was skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.notes += other.notes


def count_gtest(path):
    """Counts of one GoogleTest XML file; skipped and disabled cases are both skipped."""
    counts = Counts()
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += 1
            counts.notes.append(f"failed: {name}")
        elif skip is not None or case.get("result") == "skipped" or case.get("status") == "notrun":
            counts.skipped += 1
            reason = (skip.get("message") or "").strip().split("\n")[-1] if skip is not None else ""
            counts.notes.append(f"skipped: {name}" + (f": {reason}" if reason else ""))
        else:
            counts.passed += 1
    return counts


def count_ctest(junit_path, results_folder):
    """Counts of a ctest run. A program that left its own cases in `results_folder` counts by those, any other as one
    case. A program that ctest calls failed counts at least one failure, whatever it managed to write before."""
    counts = Counts()
    for test in ElementTree.parse(junit_path).iter("testcase"):
        name, status = test.get("name"), test.get("status")
        failed = status not in ("run", "notrun", "disabled") or test.find("failure") is not None
        own = os.path.join(results_folder, name + ".xml")
        if os.path.exists(own):
            cases = count_gtest(own)
            counts.add(cases)
            if failed and cases.failed == 0:
                counts.failed += 1
                counts.notes.append(f"failed: {name} ended badly after its cases")
        elif failed:
            counts.failed += 1
            counts.notes.append(f"failed: {name}")
        elif status == "run":
            counts.passed += 1
        else:
            counts.skipped += 1
            counts.notes.append(f"skipped: {name}")
    return counts
