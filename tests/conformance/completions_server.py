"""A server of the completions API on this machine, over an eager engine, with planted faults."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def vocabulary(checkpoint):
    made = json.loads((checkpoint / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return sorted(made, key=made.__getitem__)


class Right:
    """What a server of several checkpoints answers; a fault replaces a method.

    `engines` has an engine and its vocabulary by the name of each model. `bodies` keeps the
    requests.
    """

    takes_ids, refusal = True, 400

    def __init__(self, engines):
        self.engines, self.bodies = engines, []

    def listed(self):
        return 200, {"object": "list", "data": [{"id": name} for name in self.engines]}

    def ids(self, prompt, texts, config):
        """The tokens of a prompt: those given, or BOS and one for each letter."""
        if isinstance(prompt, list):
            return prompt
        return [config["bos_token_id"], *(texts.index(each) for each in prompt)]

    def text(self, tokens, texts):
        return "".join(texts[each] for each in tokens if not texts[each].startswith("<"))

    def completed(self, body):
        self.bodies.append(body)
        if isinstance(body["prompt"], list) and not self.takes_ids:
            return self.refusal, {"error": {"message": "prompt must\n be a string"}}
        engine, texts = self.engines[body["model"]]
        ids = self.ids(body["prompt"], texts, engine.config)
        tokens = engine.run(ids, body["max_tokens"])
        return 200, {
            "choices": [{"text": self.text(tokens, texts), "finish_reason": "length"}],
            "usage": {"prompt_tokens": len(ids), "completion_tokens": len(tokens)},
        }


@contextmanager
def serving(answers):
    """The URL of a server that gives these answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self):
            self.send(*answers.listed() if self.path == "/v1/models" else (404, {}))

        def do_POST(self):
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            self.send(*answers.completed(body) if self.path == "/v1/completions" else (404, {}))

        def send(self, status, made, kind="application/json", extra=()):
            data = made if isinstance(made, bytes) else json.dumps(made).encode()
            self.send_response(status)
            for name, value in {"Content-Type": kind, **dict(extra)}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
