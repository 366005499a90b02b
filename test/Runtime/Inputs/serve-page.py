# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve-page.py BROWSER PRODUCT SLOW: the page that a server shows, in use.

The model is the hand-written one with the storyteller's tokenizer; a step of
SLOW takes 20 ms, and nothing but its context of 4,000 tokens ends its texts.
"""

import sys

import browser
import serving

program, fast, slow = sys.argv[1:4]
LAST = "[...document.querySelectorAll('.message')].at(-1)"


def open_page(server):
    return browser.Browser(program, "profile",
                           f"http://{server.host}:{server.port}/")


def say(page, text):
    page.evaluate(f"byId('text').value = {text!r};"
                  "byId('form').requestSubmit()")


def conversation():
    with serving.Server([fast], "--chat-template=echo.jinja") as server, \
            open_page(server) as page:
        page.wait_for("document.title === 'fake'")
        page.evaluate("byId('most').value = 3")
        for turn in (1, 2):
            say(page, "<b>$</b>")
            page.wait_for(f"document.querySelectorAll('.assistant').length "
                          f"=== {turn} && !running && messages.length === "
                          f"{2 * turn}")
        answers = page.evaluate("messages.filter(m => m.role === 'assistant')"
                                ".map(m => m.content)")
        # The same conversation without a browser.
        messages = []
        for answer in answers:
            messages.append({"role": "user", "content": "<b>$</b>"})
            reply = server.post("/v1/chat/completions", {
                "messages": messages, "max_tokens": 3})
            assert reply["choices"][0]["message"]["content"] == answer, reply
            messages.append({"role": "assistant", "content": answer})
        # Texts are texts, whatever they look like.
        assert page.evaluate("document.querySelectorAll('#log b').length") == 0
        page.evaluate("byId('fresh').click()")
        assert page.evaluate("messages.length + byId('log').children.length") \
            == 0


def stopped_answer():
    with serving.Server([slow]) as server, open_page(server) as page:
        page.wait_for("!!document.querySelector('.note')")  # it does not talk
        # '$"' are the tokens 3 and 1; their sum, 4, is '%', whose double is ')'.
        say(page, '$"')
        page.wait_for(f"{LAST}.textContent.startsWith('%)')")
        assert page.evaluate("byId('send').textContent") == "Stop"
        page.evaluate("byId('send').click()")
        page.wait_for("!running && byId('send').textContent === 'Send'")
        server.wait_for_metric("attune_sequences_running", 0)


def fresh_conversation():
    with serving.Server([slow], "--chat-template=echo.jinja",
                        "--timeout=2") as server, open_page(server) as page:
        page.wait_for("document.title === 'fake'")
        say(page, '$"')
        page.wait_for(f"{LAST}.textContent.startsWith('%)')")
        # What is still being written belongs to the old conversation.
        page.evaluate("byId('fresh').click()")
        server.wait_for_metric("attune_sequences_running", 0)
        say(page, '$"')
        page.wait_for(f"{LAST}.textContent.startsWith('%)')")
        assert page.evaluate("messages.map(m => m.role).join()") == "user"
        assert page.evaluate("byId('send').textContent") == "Stop"
        # An error behind the first words leaves them as the answer.
        page.wait_for("!running && !!document.querySelector('.error')")
        roles = page.evaluate("messages.map(m => m.role).join()")
        assert roles == "user,assistant", roles
        assert page.evaluate("messages[1].content").startswith("%)")


def key():
    with serving.Server([fast], "--api-key=secret") as server, \
            open_page(server) as page:
        page.wait_for("!!document.querySelector('.error')")
        page.evaluate("byId('key').value = 'secret'")
        say(page, "$")
        page.wait_for("document.querySelector('.assistant')?.textContent")


def no_page():
    with serving.Server([fast]) as server:
        status, headers, text = server.request("GET", "/")
        assert status == 200 and "<script>" in text
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    with serving.Server([fast], "--no-web") as server:
        assert server.request("GET", "/")[0] == 404


serving.run([conversation, stopped_answer, fresh_conversation, key, no_page])
