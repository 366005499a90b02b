"""Holds the dialect's .td files and its tests together.

Every ```mlir example of a description stands in an ops-*.mlir test (or, for an
attribute, in the test of an op that has it), and every labelled verifier rule
has a case in the invalid-*.mlir file that the description names.
"""

import pathlib
import re
import sys

dialect, tests = map(pathlib.Path, sys.argv[1:])


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def code(path):
    lines = path.read_text().splitlines()
    return squeezed("\n".join(l for l in lines if not l.lstrip().startswith("//")))


ran = " ".join(code(path) for path in sorted(tests.glob("ops-*.mlir")))
failures = 0


def complain(text):
    global failures
    failures += 1
    print(text)


examples = labels = 0
for path in sorted(dialect.glob("*.td")):
    text = path.read_text()
    for op in re.split(r"\ndef ", text)[1:]:
        name = re.match(r"\w+", op).group()
        for example in re.findall(r"```mlir\n(.*?)```", op, re.S):
            # Statements of one example may stand apart in the test.
            for statement in re.split(r"\n(?=\s*%\w+(?:, %\w+|:\d+)* = )", example):
                examples += 1
                if squeezed(statement) not in ran:
                    complain(f"{path.name}: {name}: no test runs: {squeezed(statement)}")
        rules = re.search(r"Verifier rules \(tests: `([\w-]+\.mlir)`", op)
        if "hasVerifier = 1" in op and not rules and "View" not in path.name:
            complain(f"{path.name}: {name}: a verifier without documented rules")
        if not rules:
            continue
        cases = (tests / rules.group(1)).read_text()
        for label in re.findall(r"- ([A-Z]\d+)(?: to ([A-Z]\d+))?: ", op):
            first, last = label[0], label[1] or label[0]
            for number in range(int(first[1:]), int(last[1:]) + 1):
                labels += 1
                rule = f"{first[0]}{number}"
                if f"// {rule}: " not in cases:
                    complain(f"{path.name}: {name}: {rules.group(1)} has no case of {rule}")

print(f"{examples} examples, {labels} rules, {failures} failures")
sys.exit(failures != 0)
