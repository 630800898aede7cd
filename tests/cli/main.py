"""Runs the tests of this folder: main.py PROGRAM SOURCE_FOLDER [--sanitized] [unittest names].

Where GTEST_OUTPUT asks for XML files in a folder, one is left there in GoogleTest's form, so that the cases count.
"""
import os
import sys
import unittest
import xml.etree.ElementTree as ElementTree

import program


class RecordingResult(unittest.TextTestResult):
    """Remembers every case and how it ended."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases = {}

    def startTest(self, test):
        super().startTest(test)
        self.cases[test.id()] = ("passed", "")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.cases[test.id()] = ("failure", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.cases[test.id()] = ("failure", str(err[1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.cases[test.id()] = ("failure", str(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.cases[test.id()] = ("skipped", reason)


def write_xml(result, folder):
    suites = ElementTree.Element("testsuites", name="cli_program_test")
    suite = ElementTree.SubElement(suites, "testsuite", name="cli_program_test")
    for name, (outcome, text) in result.cases.items():
        group, case_name = name.rsplit(".", 1)
        case = ElementTree.SubElement(suite, "testcase", name=case_name, classname=group, status="run")
        if outcome != "passed":
            ElementTree.SubElement(case, outcome, message=text)
    ElementTree.ElementTree(suites).write(os.path.join(folder, "cli_program_test.xml"))


def main():
    names = [argument for argument in sys.argv[3:] if argument != "--sanitized"]
    program.configure(sys.argv[1], sys.argv[2], sanitized="--sanitized" in sys.argv[3:])
    folder = os.path.dirname(os.path.abspath(__file__))
    if names:
        suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    else:
        suite = unittest.defaultTestLoader.discover(folder, pattern="test_*.py")
    result = unittest.TextTestRunner(resultclass=RecordingResult, verbosity=2).run(suite)
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("xml:") and output.endswith("/"):
        write_xml(result, output[len("xml:"):])
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
