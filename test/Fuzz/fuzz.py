"""Runs the fuzz targets: first over the corpus in the tree, then over inputs
that libFuzzer makes from it, for some seconds in all.

    fuzz.py BIN WORK [--seconds=60] [--jobs=N] [--only=NAME]

BIN holds the targets. WORK keeps what is found worth keeping between runs and,
in WORK/findings, inputs that break something. Prints a line a target and the
sums; ends with 1 if there is a finding.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import seeds

KEPT = pathlib.Path(__file__).resolve().parent / "Corpus"
# Bytes of an input, seconds for one, megabytes of memory: an input that needs
# more is a finding.
LIMITS = ["-max_len=16384", "-timeout=30", "-rss_limit_mb=2048"]


def run_target(target, work, seconds):
    """Returns (name, executions, covered edges, problem or None, output)."""
    name = target.name.removesuffix("Fuzzer")
    corpus, findings = work / "corpus" / name, work / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    # A target goes over all folders before it changes anything; the first one
    # gets what it finds.
    command = [target, f"-max_total_time={seconds}" if seconds else "-runs=0",
               "-print_final_stats=1", f"-artifact_prefix={findings}/{name}-",
               *LIMITS, corpus, work / "seeds" / name]
    if (KEPT / name).is_dir():
        command.append(KEPT / name)
    # Readers of files get them from memory where the system has room there.
    if os.access("/dev/shm", os.W_OK):
        os.environ.setdefault("TMPDIR", "/dev/shm")
    environment = dict(os.environ, UBSAN_OPTIONS="print_stacktrace=1",
                       ATTUNE_FUZZ_TOKENIZERS=str(work / "seeds/tokenizers"),
                       ATTUNE_FUZZ_MODELS=str(work / "seeds/Model"))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment, errors="replace")
    count = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stdout)
    edges = re.findall(r"cov: (\d+)", done.stdout)
    problem = None
    if done.returncode != 0:
        saved = re.search(r"Test unit written to (\S+)", done.stdout)
        problem = saved.group(1) if saved else f"exit code {done.returncode}"
    return (name, int(count.group(1)) if count else 0,
            int(edges[-1]) if edges else 0, problem, done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    targets = sorted(path for path in options.bin.glob("*Fuzzer")
                     if options.only in path.name)
    if not targets:
        sys.exit(f"{options.bin}: no target")
    seeds.make_seeds(options.work / "seeds")
    # Each target's share: `jobs` of them run at a time.
    share = options.seconds * options.jobs // len(targets) if options.seconds else 0
    if options.seconds and not share:
        share = 1
    executions, failed = 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, count, edges, problem, output in pool.map(
                lambda target: run_target(target, options.work, share), targets):
            executions += count
            print(f"{name:20} {count:12,} executions {edges:7,} edges"
                  + (f"  FINDING: {problem}" if problem else ""), flush=True)
            if problem:
                failed.append(name)
                print(output[-4000:], flush=True)
    print(f"{executions:,} executions, {len(failed)} findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
