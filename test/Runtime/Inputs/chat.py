"""Talks with a compiled model on a terminal, as a person would.

Usage: chat.py MODEL [OPTION ...]

Prints what went wrong and exits with 1, or says how many exchanges agreed.
"""

import os
import pty
import select
import signal
import sys
import time

SECONDS = 60


class Terminal:
    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(command[0], command)
        self.seen = b""

    def expect(self, text):
        """What came up to `text`, which must come."""
        wanted = text.encode()
        end = time.time() + SECONDS
        while wanted not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], end - time.time())
            if not ready:
                sys.exit(f"no {text!r} came, only {self.seen!r}")
            try:
                more = os.read(self.fd, 4096)
            except OSError:
                more = b""
            if not more:
                sys.exit(f"the program ended without {text!r}: {self.seen!r}")
            self.seen += more
        before, _, self.seen = self.seen.partition(wanted)
        return before.decode()

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        end = time.time() + SECONDS
        while time.time() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            select.select([self.fd], [], [], 0.05)
            try:
                os.read(self.fd, 4096)
            except OSError:
                pass
        os.kill(self.pid, signal.SIGKILL)
        sys.exit("the program does not end")


def check(condition, message):
    if not condition:
        sys.exit(message)


def main():
    terminal = Terminal([os.path.abspath(sys.argv[1]), "chat",
                         "--max-new-tokens=400"] + sys.argv[2:])
    terminal.expect("/help lists the commands")
    terminal.expect("> ")

    # Edits: a typing mistake, the begin of the line, characters of two cells.
    terminal.type("nce upon a tiem\x7f\x7fme\x01O\x05\x02\x06 你\x7f\x7f\r")
    terminal.expect("Once upon a time")
    # Ctrl-C stops the answer and not the program.
    terminal.expect("there was")
    terminal.type("\x03")
    terminal.expect("(stopped)")
    terminal.expect("> ")

    # The history gives the line again; Ctrl-U takes it away.
    terminal.type("\x1b[A")
    terminal.expect("Once upon a time")
    terminal.type("\x15/reset\r")
    terminal.expect("a new conversation")
    terminal.expect("> ")

    # Ctrl-C at the prompt drops the line.
    terminal.type("nonsense\x03")
    terminal.expect("> ")

    # A pasted text with blank lines is one turn, saved as it was.
    terminal.type("\x1b[200~One.\n\nTwo é 你好.\n\x1b[201~")
    terminal.expect("你好.")
    terminal.type("\r")
    terminal.expect("\n")
    time.sleep(0.2)
    terminal.type("\x03")
    terminal.expect("> ")
    terminal.type("/save talk.json\r")
    terminal.expect("saved to talk.json")
    terminal.expect("> ")
    terminal.type("/hlep\r")
    terminal.expect("did you mean /help?")
    terminal.expect("> ")
    terminal.type("\x04")
    code = terminal.wait()
    check(code == 0, f"exit code {code}")
    saved = open("talk.json", encoding="utf-8").read()
    check('"One.\\n\\nTwo é 你好."' in saved, f"saved: {saved}")
    check("nonsense" not in saved, f"saved: {saved}")
    print("the conversation went as expected")


main()
