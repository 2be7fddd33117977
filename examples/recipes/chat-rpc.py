"""Drives `reeve chat --mode rpc`: asks an agent, approves what it may do, and prints the conversation.

Usage: python3 chat-rpc.py COMMAND... -- PROMPT...
       python3 chat-rpc.py npx reeve chat --mode rpc --tools all -- "Write a haiku to haiku.txt"
"""

import json
import subprocess
import sys
import threading
from queue import Queue


class Chat:
    """A conversation with an agent. Each command gets an answer; everything else that happens is passed to `on_line`."""

    def __init__(self, command, on_line):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.on_line = on_line
        self.answers = {}
        self.ready = Queue()
        self.idle = Queue()
        self.last_id = 0
        threading.Thread(target=self._read, daemon=True).start()
        self.state = self.ready.get(timeout=120)

    def call(self, kind, **fields):
        """Sends a command and returns its result. Raises the error of a refused one."""
        self.last_id += 1
        answer = self.answers[self.last_id] = Queue()
        line = {"id": self.last_id, "type": kind, **fields}
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        found = answer.get(timeout=120)
        if "error" in found:
            raise RuntimeError(f"{found['error']['code']}: {found['error']['message']}")
        return found["result"]

    def ask(self, prompt):
        """Sends a prompt and waits until the agent has finished."""
        self.call("prompt", input=prompt)
        self.idle.get(timeout=120)

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=120)

    def _read(self):
        for text in self.process.stdout:
            line = json.loads(text)
            if line["type"] == "ready":
                self.ready.put(line)
            elif line["type"] == "response":
                self.answers.pop(line["id"]).put(line)
            else:
                # A handler may send commands, whose answers this thread reads.
                threading.Thread(target=self.on_line, args=(self, line), daemon=True).start()
                if line["type"] == "idle":
                    self.idle.put(line)


def show(chat, line):
    """Prints what the agent says and does, and allows every call."""
    if line["type"] == "question":
        question = line["question"]
        print(f"? {question['toolName']} {json.dumps(question['input'])}")
        chat.call("approve", approvalId=question["approvalId"], decision="approved")
    if line["type"] != "event":
        return
    event = line["event"]
    if event["type"] == "message_end":
        texts = [part["text"] for part in event["data"]["message"]["content"] if part["type"] == "text"]
        if texts:
            print("".join(texts))
    elif event["type"] == "tool_execution_end":
        print(f"= {event['data']['toolName']} {event['data']['status']}")


def main(words):
    at = words.index("--")
    chat = Chat(words[:at], show)
    for prompt in words[at + 1 :]:
        print(f"> {prompt}")
        chat.ask(prompt)
    state = chat.call("state")
    print(f"session {state['sessionId']}: ${state['costUsd']}")
    return chat.close()


if __name__ == "__main__":
    if "--" not in sys.argv:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
