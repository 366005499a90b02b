# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve_memory.py PRODUCT RUNTIME_TESTS: a server whose caches take a GPU's
memory page by page. Every text is what `generate` writes.

PRODUCT keeps 128 bytes a position in each of two caches, so that a page of 4096
bytes has 32 positions.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, sys.argv[2] + "/Inputs")
import serving

PRODUCT = sys.argv[1]


def prompt_of(length, seed):
    return [(i * i * 7 + seed * 31 + i) % 1024 for i in range(length)]


def generate(prompt, tokens):
    run = subprocess.run(
        [PRODUCT, "generate", "--prompt-ids", ",".join(map(str, prompt)),
         f"--max-new-tokens={tokens}", "--ignore-eos", "--format=json"],
        capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["text"]


def complete(server, prompt, tokens, **more):
    return server.post("/v1/completions",
                       {"prompt": prompt, "max_tokens": tokens,
                        "ignore_eos": True, **more})


def at_once(server, requests):
    """The replies to some requests that are sent together."""
    replies = [None] * len(requests)

    def ask(number, prompt, tokens):
        replies[number] = complete(server, prompt, tokens)

    threads = [threading.Thread(target=ask, args=(i, *request))
               for i, request in enumerate(requests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def check(requests, replies):
    for (prompt, tokens), reply in zip(requests, replies):
        assert reply["usage"]["completion_tokens"] == tokens, reply
        wanted = generate(prompt, tokens)
        assert reply["choices"][0]["text"] == wanted, (len(prompt), tokens,
                                                       reply, wanted)


def pages(server):
    # A request is answered before its round is counted.
    return server.metric("attune_cache_pages_used")


@contextlib.contextmanager
def logged_server(*options):
    """A server, and a function that gives the fake driver's log so far."""
    path = os.path.abspath("driver.log")
    server = serving.Server(["env", f"FAKE_CUDA_LOG={path}", PRODUCT],
                            *options)
    with server:
        yield server, lambda: open(path).read().splitlines()


def growth():
    """Memory follows the positions, over the ends of pages."""
    with serving.Server([PRODUCT], "--slots=4", "--quiet") as server:
        assert pages(server) == 0
        requests = [(prompt_of(29, 1), 9), (prompt_of(3, 2), 4)]
        check(requests, at_once(server, requests))
        # The last tokens are not in the caches: 37 positions and 6.
        server.wait_for_metric("attune_cache_pages_used", 2 * (2 + 1))
        assert server.metric("attune_cache_page_bytes") == 4096
        assert server.metric("attune_preemptions_total") == 0
        assert "take the GPU's memory as texts need it" in server.read_log()
        assert server.stop() == 0


def beginnings():
    """Texts that begin alike have the same pages there. Nothing but pages
    takes memory once the server has started."""
    def allocations(log):
        return [line for line in log if line.startswith("alloc")]

    with logged_server("--slots=4", "--quiet") as (server, read_log):
        at_start = allocations(read_log())
        assert at_start
        prompt = prompt_of(70, 3)
        reply = complete(server, prompt, 3, n=3, temperature=0.9, seed=5)
        assert len(reply["choices"]) == 3
        # Three pages of keys, or of values, are opened at once.
        assert "access to 3 pages" in read_log()
        # Two whole pages are shared, and each has a third; of two caches.
        server.wait_for_metric("attune_cache_pages_used", 2 * (2 + 3))
        # What a slot remembers is shared with a text that goes on otherwise.
        other = prompt[:66] + prompt_of(20, 4)
        reply = complete(server, other, 2)
        assert reply["usage"]["prompt_tokens_details"]["cached_tokens"] == 66
        check([(other, 2)], [reply])
        server.wait_for_metric("attune_cache_pages_used", 2 * (2 + 3 + 1))
        assert allocations(read_log()) == at_start
        assert server.stop() == 0


def exhaustion():
    """Of three texts that memory does not hold at a time, the youngest waits,
    and its caches meanwhile in the host's memory. Nothing but time shows it."""
    requests = [(prompt_of(31, seed), 5) for seed in (6, 7, 8)]
    with serving.Server([PRODUCT], "--slots=3", "--cache-memory=24K",
                        "--quiet") as server:
        replies = at_once(server, requests)
        check(requests, replies)
        assert server.metric("attune_preemptions_total") > 0
        # No token of a prompt was computed twice.
        assert server.metric("attune_prompt_tokens_total") == 3 * 31
        assert server.metric("attune_preemptions_recomputed_total") == 0
        server.wait_for_metric("attune_cache_pages_on_host", 0)
        assert server.metric("attune_cache_pages") == 6
        # Three pages of each cache are a text's, whatever its context.
        assert "at most 96 tokens of 256" in server.read_log()
        error = server.post("/v1/completions", {"prompt": prompt_of(100, 9)},
                            status=400)
        assert "96" in error["error"]["message"], error
        # All of it, when others remember something else.
        alone = [(prompt_of(86, 10), 10)]
        check(alone, at_once(server, alone))
        server.wait_for_metric("attune_cache_pages_used", 6)
        assert server.stop() == 0
    # Without memory on the host tokens are computed again.
    with serving.Server([PRODUCT], "--slots=3", "--cache-memory=24K",
                        "--swap-memory=0", "--quiet") as server:
        again = at_once(server, requests[:2])
        assert ([reply["choices"] for reply in again] ==
                [reply["choices"] for reply in replies[:2]])
        assert server.metric("attune_preemptions_recomputed_total") > 0
        assert server.metric("attune_prompt_tokens_total") > 2 * 31
        assert server.stop() == 0


def returns():
    """A text that gave way shares its beginning again when it comes back."""
    begin = prompt_of(42, 11)
    first = (begin + prompt_of(16, 12), 24)
    second = (begin + prompt_of(16, 13), 8)
    with serving.Server([PRODUCT], "--slots=2", "--cache-memory=32K",
                        "--quiet") as server:
        thread = threading.Thread(target=complete, args=(server, *first))
        thread.start()
        server.wait_for_metric("attune_prompt_tokens_total", 58)
        reply = []
        other = threading.Thread(
            target=lambda: reply.append(complete(server, *second)))
        other.start()
        on_host = 0
        while thread.is_alive():
            on_host = max(on_host,
                          server.metric("attune_cache_pages_on_host"))
            thread.join(0.01)
        other.join()
        # 64 positions take four pages, and logits more than one.
        assert on_host == 6
        server.wait_for_metric("attune_cache_pages_on_host", 0)
        assert server.metric("attune_preemptions_total") == 1
        assert server.metric("attune_prompt_tokens_total") == 58 + 16
        check([second], reply)
        assert server.stop() == 0


def scores():
    """A prompt is scored a token at a time: new tokens have the same numbers
    when they come back in a prompt."""
    prompts = [prompt_of(4, 14), prompt_of(20, 15)]
    with serving.Server([PRODUCT], "--slots=2", "--quiet") as server:
        for prompt in prompts:
            said = complete(server, prompt, 6, logprobs=2,
                            return_tokens_as_token_ids=True)
            said = said["choices"][0]["logprobs"]
            ids = [int(name.removeprefix("token_id:"))
                   for name in said["tokens"]]
            found = complete(server, prompt + ids, 1, echo=True, logprobs=2)
            found = found["choices"][0]["logprobs"]["token_logprobs"]
            # Sums of 32 bits, in another order for the prompt of many rows.
            assert all(abs(a - b) < 1e-5 for a, b in zip(
                found[len(prompt):-1], said["token_logprobs"],
                strict=True)), (found, said)
        assert server.stop() == 0


def unequal():
    """No kernel reads behind a shorter text, where there is no memory."""
    with serving.Server([PRODUCT], "--slots=3", "--quiet") as server:
        requests = [(prompt_of(length, length), 5) for length in (2, 70, 33)]
        check(requests, at_once(server, requests))
        assert server.metric("attune_cache_pages_used") > 0
        assert server.stop() == 0


def whole():
    """A driver without such pages: all memory is there from the start."""
    with serving.Server([PRODUCT], "--slots=3", "--quiet") as server:
        requests = [(prompt_of(length, length), 5) for length in (2, 33)]
        check(requests, at_once(server, requests))
        assert ("of 3 texts of 256 tokens take the GPU's memory from the "
                "start, because its driver cannot" in server.read_log())
        assert server.stop() == 0


def launches():
    """A driver that cannot start all blocks of a kernel together."""
    with serving.Server([PRODUCT], "--slots=2", "--quiet") as server:
        _, _, text = server.request("GET", "/metrics")
        assert "persistent" not in text, text
        complete(server, [1, 2, 3], 6)
        why = "the GPU or its driver cannot start all blocks of a kernel together"
        _, _, text = server.request("GET", "/metrics")
        assert f'attune_persistent_kernel_refused{{reason="{why}"}} 1' in text, text
        assert f"without the persistent kernel, because {why}" in server.read_log()
        assert server.stop() == 0


for case in sys.argv[3:]:
    globals()[case]()
    print("ok", case)
