# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a server does under load.

serve_load.py delay PRODUCT    how long tokens take while a long prompt is read
serve_load.py streams PRODUCT  many texts for a while, each compared with its own

`delay` times the tokens of `--streams` texts, first alone, then while a prompt
of `--prompt` tokens is read, and prints how long the same tokens took, and the
quotients.
`streams` keeps `--streams` clients busy for `--seconds` with texts of mixed
lengths; each must be what `generate` writes. It prints errors, texts, tokens a
second, and the server's memory at the beginning and the end. The exit code is 1
if there was an error, a wrong text, or memory that grew by more than a tenth
after the first quarter.
"""

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "Runtime", "Inputs"))
import serving


def prompt(number, length, vocabulary):
    source = random.Random(number)
    return [source.randrange(5, vocabulary) for _ in range(length)]


def stream_times(server, body, times):
    """Appends the time of each token that arrives."""
    with server.connect() as connection:
        connection.request("POST", "/v1/completions",
                           json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        while line := reply.readline():
            if line.startswith(b"data: {"):
                times.append(time.monotonic())


def describe(name, gaps):
    gaps = sorted(gaps)
    at = {"median": 0.5, "p90": 0.9, "p99": 0.99, "most": 1}
    found = {key: 1e3 * gaps[min(int(share * len(gaps)), len(gaps) - 1)]
             for key, share in at.items()}
    found["mean"] = 1e3 * statistics.mean(gaps)
    print(f"{name:>18} ({len(gaps)} tokens): " + ", ".join(
        f"{key} {value:.2f} ms" for key, value in found.items()), flush=True)
    return found


def watch_streams(options, with_prompt):
    """Arrival times of the tokens of each text, and when the prompt was read."""
    with serving.Server([options.product],
                        f"--slots={options.streams + 1}",
                        f"--threads={options.threads}") as server:
        times = [[] for _ in range(options.streams)]
        threads = [threading.Thread(target=stream_times, args=(server, {
            "prompt": prompt(i, 20 + 7 * i, options.vocabulary),
            "max_tokens": options.tokens, "ignore_eos": True}, times[i]))
            for i in range(options.streams)]
        for thread in threads:
            thread.start()
        while min(map(len, times)) < options.alone:
            time.sleep(0.01)
        begin = end = time.monotonic()
        if with_prompt:
            reply = server.post("/v1/completions", {
                "prompt": prompt(99, options.prompt, options.vocabulary),
                "max_tokens": 1, "ignore_eos": True})
            end = time.monotonic()
            assert reply["usage"]["prompt_tokens"] == options.prompt
            print(f"the prompt took {end - begin:.2f} s"
                  + ("" if min(each[-1] for each in times) > end
                     else "; texts ended before it did"))
        for thread in threads:
            thread.join()
    return times, begin, end


def delay(options):
    # Later tokens take longer: each is compared with itself.
    quiet, _, _ = watch_streams(options, with_prompt=False)
    times, begin, end = watch_streams(options, with_prompt=True)
    alone, during = [], []
    for each, own in zip(times, quiet):
        for i in range(1, len(each)):
            if each[i - 1] > begin and each[i] < end:
                during.append(each[i] - each[i - 1])
                alone.append(own[i] - own[i - 1])
    first = describe("alone", alone)
    second = describe("during the prompt", during)
    print("quotients: " + ", ".join(
        f"{key} {second[key] / first[key]:.2f}" for key in first))
    return 0


def solo_texts(options):
    """Prompts and the ids that `generate` gives for each."""
    found = []
    source = random.Random(1)
    for number in range(options.texts):
        ids = prompt(number, source.choice([1, 5, 17, 40, 120, 300]),
                     options.vocabulary)
        tokens = source.choice([1, 8, 30, 100])
        run = subprocess.run(
            [options.product, "generate", "--prompt-ids",
             ",".join(map(str, ids)), f"--max-new-tokens={tokens}",
             "--ignore-eos", "--format=json"],
            capture_output=True, text=True, check=True)
        found.append((ids, tokens, json.loads(run.stdout)["text"]))
    return found


def memory_of(process):
    with open(f"/proc/{process.pid}/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
    return 0


def streams(options):
    wanted = solo_texts(options)
    problems, counts, lock = [], [0, 0], threading.Lock()
    with serving.Server([options.product], "--slots=64", "--queue=128",
                        f"--threads={options.threads}") as server:
        end = time.monotonic() + options.seconds

        def client(number):
            source = random.Random(number)
            while time.monotonic() < end:
                ids, tokens, text = source.choice(wanted)
                body = {"prompt": ids, "max_tokens": tokens,
                        "ignore_eos": True}
                try:
                    if source.random() < 0.5:
                        got = server.post("/v1/completions",
                                          body)["choices"][0]["text"]
                    else:
                        got = "".join(
                            event["choices"][0]["text"] for event in
                            server.stream("/v1/completions", body))
                    problem = "" if got == text else f"{got!r}, not {text!r}"
                except (OSError, AssertionError,
                        http.client.HTTPException) as error:
                    problem = repr(error)
                with lock:
                    counts[0] += 1
                    counts[1] += tokens
                    if problem:
                        problems.append(problem)

        clients = [threading.Thread(target=client, args=[i])
                   for i in range(options.streams)]
        begin = time.monotonic()
        for thread in clients:
            thread.start()
        time.sleep(options.seconds / 4)
        early = memory_of(server.process)
        for thread in clients:
            thread.join()
        late = memory_of(server.process)
        seconds = time.monotonic() - begin
        hits = server.metric("attune_prompt_hits_total")
        steps = server.metric("attune_decode_steps_total")
        code = server.stop()
    print(f"{counts[0]} texts, {counts[1]} tokens in {seconds:.0f} s "
          f"({counts[1] / seconds:.0f} a second), {steps:.0f} steps, "
          f"{hits:.0f} prompts that a cache held some of")
    print(f"memory after a quarter {early} MiB, at the end {late} MiB")
    print(f"{len(problems)} errors, exit code {code}")
    for problem in problems[:5]:
        print("  " + problem)
    return int(bool(problems) or code != 0 or late > early * 1.1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["delay", "streams"])
    parser.add_argument("product")
    parser.add_argument("--streams", type=int, default=0)
    parser.add_argument("--prompt", type=int, default=4000)
    parser.add_argument("--tokens", type=int, default=1500)
    parser.add_argument("--alone", type=int, default=100,
                        help="tokens of each text before the prompt comes")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--vocabulary", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not options.streams:
        options.streams = 4 if options.what == "delay" else 64
    return {"delay": delay, "streams": streams}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
