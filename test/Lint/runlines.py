"""Checks that every RUN line of the lit tests proves something.

A RUN line ends in a checker, or prepares a file that a later RUN line of the
same test uses. The last one always ends in a checker. What a test requires is
known to test/lit.cfg.py: misspelt, it would never run. Usage: runlines.py ROOT
"""

import re
import sys

import tree

SUFFIXES = (".mlir", ".test", ".c")
CHECKERS = {"FileCheck", "diff", "cmp", "fpcmp", "not", "count", "%python", "test"}
# Scripts that write files and judge nothing.
WRITERS = re.compile(
    r"%python\s+(?:-\S+\s+)*(?:%\{(?:adapters|gguf|quantized|tensors)\}|\S*/(?:"
    r"adapters|damage|drop_tensor|gemma_vision|gguf|named-templates|plain_layer|"
    r"quantized_folders|qwen_vl|raise_version|random_specs|rename_tensors|sounds|"
    r"tensors|weight_norms|with-tokenizer)\.py)")
# These check by themselves, with an exit code made for it.
CHECKING = re.compile(
    r"--?verify-diagnostics|\battune verify\b|\bgrep -q\b|\bclang-format\b")
SETUP = {"split-file", "mkdir", "rm", "cp", "mv", "ln", "cd", "chmod", "touch",
         "tar", "export", "echo", "printf", "truncate", "%cmake", "head", "tail",
         "dd", "cat", "sed", "env"}
OUTPUT = re.compile(
    r"(?:(?<!\S)(?:-o|--outputs?|--emit-stages)[ =]|>)\s*([^\s>|&;]+)")


def run_lines(text):
    """(line number, command) of each RUN line, continuations joined."""
    lines, pending = [], None
    for number, line in enumerate(text.splitlines(), 1):
        match = re.search(r"(?<![\w-])RUN:\s*(.*)", line)
        if not match:
            continue
        command = match.group(1).strip()
        if pending:
            number, command = pending[0], pending[1] + " " + command
        pending = None
        if command.endswith("\\"):
            pending = (number, command[:-1].strip())
        else:
            lines.append((number, command))
    return lines


def is_check(command):
    command = re.sub(r"\"[^\"]*\"|'[^']*'", "QUOTED", command)
    last = re.split(r"\s*(?:\|\||&&|\||;)\s*", command)[-1]
    words = [word for word in last.split() if not re.match(r"\w+=", word)]
    if WRITERS.match(last):
        return False
    return bool(words) and (words[0] in CHECKERS
                            or CHECKING.search(command) is not None)


def prepares(command, later):
    if command.split()[0] in SETUP or WRITERS.match(command):
        return True
    return any(output in other for output in OUTPUT.findall(command)
               for other in later)


def features(text):
    """(line number, name) of each feature that a test asks for."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.search(r"(?<![\w-])(?:REQUIRES|UNSUPPORTED|XFAIL):(.*)", line)
        if match:
            yield from ((number, name) for name in re.findall(r"[\w-]+", match.group(1)))


def is_known(feature, config):
    return (feature.startswith("host-") or feature.endswith("-registered-target")
            or f'"{feature}"' in config)


def main():
    root, errors, checked = sys.argv[1], [], 0
    config = tree.read(root, "test/lit.cfg.py")
    for name in tree.files(root):
        if not name.startswith("test/") or not name.endswith(SUFFIXES):
            continue
        if tree.is_data(name) or name.startswith("test/lib/"):
            continue
        lines = run_lines(tree.read(root, name))
        checked += 1
        if not lines:
            errors.append(f"{name}:1: a test without a RUN line never runs")
        errors += [f"{name}:{number}: '{feature}' is no feature of test/lit.cfg.py"
                   for number, feature in features(tree.read(root, name))
                   if not is_known(feature, config)]
        for index, (number, command) in enumerate(lines):
            later = [other for _, other in lines[index + 1:]]
            if is_check(command) or (later and prepares(command, later)):
                continue
            errors.append(f"{name}:{number}: RUN line ends in no checker")
    tree.finish(checked, "tests", errors)


if __name__ == "__main__":
    main()
