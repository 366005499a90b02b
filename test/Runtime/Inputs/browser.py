# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A headless browser, spoken to through its debugging pipe."""

import json
import os
import subprocess
import time


class Browser:
    """Opens a page while it is entered."""

    def __init__(self, program, profile, url):
        self.command = [program, "--headless", "--no-sandbox", "--disable-gpu",
                        "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self.url = url

    def __enter__(self):
        # The browser reads descriptor 3 and writes to descriptor 4.
        its_input, self.to = os.pipe()
        self.answers, its_output = os.pipe()
        os.set_inheritable(its_input, True)
        os.set_inheritable(its_output, True)
        script = f'exec "$@" 3<&{its_input} 4>&{its_output}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *self.command],
            pass_fds=[its_input, its_output], stderr=subprocess.DEVNULL)
        os.close(its_input)
        os.close(its_output)
        self.number, self.held, self.session = 0, b"", None
        target = self.call("Target.createTarget", url=self.url)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.answers)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.held:
                more = os.read(self.answers, 65536)
                assert more, "the browser ended"
                self.held += more
            text, self.held = self.held.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                assert "result" in answer, answer
                return answer["result"]

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script,
                           returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, script):
        """Until a script gives something that is true; gives that."""
        end = time.monotonic() + 15
        while True:
            value = self.evaluate(script)
            if value:
                return value
            assert time.monotonic() < end, (
                script, self.evaluate("document.body.innerText"))
            time.sleep(0.05)
