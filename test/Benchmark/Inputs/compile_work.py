"""The operations that passes begin with, over three examples, beside recorded
figures: how long a compilation takes, on any machine.

Usage: compile_work.py FIGURES ATTUNE EXAMPLES
"""
import json
import os
import subprocess
import sys

figures, attune, examples = sys.argv[1:]
with open(figures) as file:
    recorded = json.load(file)
for name, limit in recorded.items():
    result = subprocess.run(
        [attune, "compile", os.path.join(examples, name, "model.json"), "--emit=vector",
         "-o", os.devnull, "--cpu=x86-64-v3", "--threads=1", "--timing",
         "--message-format=json"],
        capture_output=True, text=True, check=True)
    timing = next(json.loads(line)["timing"] for line in result.stderr.splitlines()
                  if line.startswith('{"timing"'))
    work = sum(int(stage["remark"].split()[0]) for stage in timing
               if "operations in passes" in stage.get("remark", ""))
    verdict = "as recorded"
    if work > 1.05 * limit:
        verdict = "TOO MUCH: find what makes it, or record it with the reason"
    elif work < 0.95 * limit:
        verdict = "less than recorded: record it"
    print(f"{name}: {work} operations, recorded {limit}: {verdict}")
