# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pictures-page.py BROWSER PRODUCT: pictures on the page that a server shows:
chosen, dropped and pasted. The product is that of pictures.py."""

import base64
import os
import sys

import browser
import serving

QUESTION = "what1is1in1this1picture1here"


def url_of(name):
    with open(name, "rb") as file:
        data = base64.b64encode(file.read()).decode()
    return "data:image/png;base64," + data


def give(page, event, url, name="b.png", kind="image/png"):
    """A file comes by an event that brings what `carrier` is called."""
    carrier = "clipboardData" if event == "paste" else "dataTransfer"
    maker = "ClipboardEvent" if event == "paste" else "DragEvent"
    page.evaluate(f"""{{
      const bytes = Uint8Array.from(atob('{url.split(",")[1]}'),
                                    c => c.charCodeAt(0));
      const files = new DataTransfer();
      files.items.add(new File([bytes], '{name}', {{type: '{kind}'}}));
      byId('text').dispatchEvent(new {maker}('{event}', {{
        {carrier}: files, bubbles: true, cancelable: true}}));
    }}""")


def pending(page, count):
    page.wait_for(f"document.querySelectorAll('#pending img').length === "
                  f"{count} && pictures.length === {count}")


def say(page, words, answers):
    """What the model answers."""
    page.evaluate(f"byId('text').value = {words!r};"
                  "byId('form').requestSubmit()")
    page.wait_for(f"!running && messages.length === {2 * answers}")
    return page.evaluate("messages.at(-1).content")


def asked(server, messages):
    reply = server.post("/v1/chat/completions", {"messages": messages,
                                                 "max_tokens": 6})
    return reply["choices"][0]["message"]["content"]


def shown():
    a, b = (url_of(name) for name in ("a.png", "b.png"))

    def part(url):
        return {"type": "image_url", "image_url": {"url": url}}
    with serving.Server([sys.argv[2]], "--slots=1") as server, browser.Browser(
            sys.argv[1], "profile",
            f"http://{server.host}:{server.port}/") as page:
        page.wait_for("document.querySelector('#choose')?.hidden === false")
        page.evaluate("byId('most').value = 6")
        root = page.call("DOM.getDocument")["root"]["nodeId"]
        node = page.call("DOM.querySelector", nodeId=root,
                         selector="#file")["nodeId"]
        page.call("DOM.setFileInputFiles", nodeId=node,
                  files=[os.path.abspath("a.png")])
        pending(page, 1)
        messages = [{"role": "user", "content": [
            part(a), {"type": "text", "text": QUESTION}]}]
        first = say(page, QUESTION, 1)
        pending(page, 0)
        assert first == asked(server, messages), first
        # The picture is drawn in the message.
        page.wait_for("document.querySelector('.user img').naturalWidth > 0")
        # What was dropped is taken away by a click; a message without words.
        give(page, "drop", a)
        pending(page, 1)
        give(page, "paste", b)
        pending(page, 2)
        page.evaluate("document.querySelector('#pending button').click()")
        pending(page, 1)
        messages += [{"role": "assistant", "content": first},
                     {"role": "user", "content": [part(b)]}]
        second = say(page, "", 2)
        assert second == asked(server, messages), second
        give(page, "drop", a, "a.gif", "image/gif")
        page.wait_for("document.querySelector('.error')?.textContent === "
                      "'a.gif is neither a PNG nor a JPEG file.'")
        pending(page, 0)


serving.run([shown])
